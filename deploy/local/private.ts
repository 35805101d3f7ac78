import { rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { privateStacksFolder, privateStacksName } from "./folders.ts";
import { stopStack } from "./lifecycle.ts";
import { freePorts, isFree } from "./ports.ts";
import { type PortName, readSettings, type StackSettings } from "./settings.ts";

/** Every port that a stack opens unasked. */
const portNames = [
  "KAFKA_PORT",
  "KAFKA_CONTROLLER_PORT",
  "CASSANDRA_PORT",
  "CASSANDRA_STORAGE_PORT",
  "REGISTRY_PORT",
  "REGISTRY_MANAGEMENT_PORT",
  "REDIS_PORT",
] as const satisfies readonly PortName[];
type OpenedPorts = Record<(typeof portNames)[number], number>;

let count = 0;

/**
 * Settings for a stack of one's own beside the developer's: free ports and an empty home, the fetched packages shared.
 * It lives inside the home of the other, so `down` there finds it even when its owner died.
 */
export async function privateSettings(label: string, base: StackSettings = readSettings()): Promise<StackSettings> {
  count += 1;
  const home = join(privateStacksFolder(base.home), `${label}-${process.pid}-${count}`);
  const ports = { ...(await freshPorts()), CASSANDRA_JMX_PORT: undefined };
  return { ...base, home, ports };
}

/** Stops a private stack and deletes everything of it. */
export async function removePrivateStack(settings: StackSettings): Promise<void> {
  if (basename(dirname(settings.home)) !== privateStacksName)
    throw new Error(`${settings.home} is not the home of a private stack`);
  await stopStack(settings);
  rmSync(settings.home, { recursive: true, force: true });
}

/** The ports of the settings where they are free, others where somebody has them. */
export async function availablePorts({ ports }: StackSettings): Promise<OpenedPorts> {
  const fresh = await freshPorts();
  const pairs = portNames.map(async (name) => [name, (await isFree(ports[name])) ? ports[name] : fresh[name]] as const);
  return Object.fromEntries(await Promise.all(pairs)) as OpenedPorts;
}

async function freshPorts(): Promise<OpenedPorts> {
  const free = await freePorts(portNames.length);
  return Object.fromEntries(portNames.map((name, index) => [name, free[index]])) as OpenedPorts;
}
