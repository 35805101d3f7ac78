import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { dataFolder, makeFolder, privateStacksFolder } from "./folders.ts";
import { exclusively } from "./lock.ts";
import { fetchMissing, requireSpace } from "./packages.ts";
import { requireFree } from "./ports.ts";
import { rejectWithAll, StackProblem } from "./problem.ts";
import { isSameProcess, residentBytes } from "./processes.ts";
import { type Reporter, silent } from "./reporter.ts";
import { serverKinds } from "./servers/kinds.ts";
import type { ServerKind } from "./servers/server.ts";
import { type ServerName, type StackSettings, serverNames } from "./settings.ts";
import {
  killProcess,
  launch,
  type ProcessRecord,
  portsOf,
  readRecord,
  refusal,
  runningRecord,
  signal,
  stopProcess,
  untilItAnswers,
} from "./supervisor.ts";

/** A server that was started here or found running. */
export interface ServerHandle {
  readonly name: ServerName;
  readonly settings: StackSettings;
  /** Of the process that runs now; changes with a restart. Throws when none runs. */
  readonly pid: number;
  isRunning(): boolean;
  /** Sends the signal. Returns when it is delivered; after SIGKILL when the process is gone. Data and record stay. */
  kill(name: NodeJS.Signals): Promise<void>;
  /** Starts it again with its data, after an orderly stop if it still runs; returns when it answers. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export type ServerState = "running" | "not answering" | "crashed" | "stopped";

export interface ServerStatus {
  readonly name: ServerName;
  readonly version: string;
  readonly state: ServerState;
  readonly ports: readonly number[];
  readonly pid: number | undefined;
  readonly residentBytes: number | undefined;
  readonly uptimeMs: number | undefined;
}

/** Enough for the servers to start and write; each of them fails in its own obscure way without. */
const spareBytes = 256 * 1024 ** 2;

/** Brings one server up (or finds it up) and returns when it answers. */
export async function startServer(name: ServerName, settings: StackSettings, reporter: Reporter = silent): Promise<ServerHandle> {
  await startServers([name], settings, reporter);
  return handleOf(name, settings);
}

/** Brings the named servers up, side by side. Those that run are left alone. */
export async function startServers(
  names: readonly ServerName[],
  settings: StackSettings,
  reporter: Reporter = silent,
): Promise<void> {
  requireLinux();
  makeFolder(settings.home, "STACK_HOME");
  await exclusively(settings.home, reporter, async () => {
    const kinds = names.map((name) => serverKinds[name]);
    const idle = kinds.filter(({ name }) => runningRecord(settings, name) === undefined);
    await fetchMissing(
      settings,
      idle.flatMap((kind) => kind.packages(settings)),
      reporter,
    );
    const starting = new Set(names);
    const all = Promise.allSettled(
      kinds.map((kind) => bringUp(kind, settings, reporter).finally(() => starting.delete(kind.name))),
    );
    rejectWithAll(await reporter.during(() => `waiting for ${[...starting].join(", ")},`, all));
  });
}

/** Stops what was started in this home, and the private stacks inside it. */
export async function stopStack(settings: StackSettings, reporter: Reporter = silent): Promise<void> {
  requireLinux();
  if (!existsSync(settings.home)) return;
  await exclusively(settings.home, reporter, async () => {
    const inner = privateStacks(settings);
    await Promise.all(inner.map((stack) => stopStack(stack, reporter)));
    const stopping = new Set(serverNames.filter((name) => runningRecord(settings, name) !== undefined));
    if (stopping.size + inner.length === 0) reporter.line("nothing was running");
    const all = Promise.allSettled(
      serverNames.map((name) => takeDown(serverKinds[name], settings, reporter).finally(() => stopping.delete(name))),
    );
    rejectWithAll(await reporter.during(() => `stopping ${[...stopping].join(", ")},`, all));
  });
}

/** Stops everything and deletes the data; fetched packages and logs stay. */
export async function resetStack(settings: StackSettings, reporter: Reporter = silent): Promise<void> {
  await stopStack(settings, reporter);
  // Only folders that a server was given: the home may be somebody's folder with a data/ of its own.
  for (const name of serverNames) rmSync(dataFolder(settings, name), { recursive: true, force: true });
  rmSync(privateStacksFolder(settings.home), { recursive: true, force: true });
  reporter.line("data deleted");
}

export async function stackStatus(settings: StackSettings): Promise<ServerStatus[]> {
  requireLinux();
  return Promise.all(serverNames.map((name) => serverStatus(serverKinds[name], settings)));
}

/** A handle of a server that is up already, for example of the developer's own stack. */
export function handleOf(name: ServerName, settings: StackSettings): ServerHandle {
  const kind = serverKinds[name];
  const running = () => runningRecord(settings, name);
  const stop = () => exclusively(settings.home, silent, () => takeDown(kind, settings, silent));
  return {
    name,
    settings,
    get pid() {
      const record = running();
      if (record === undefined) throw new Error(`${name} does not run`);
      return record.pid;
    },
    isRunning: () => running() !== undefined,
    async kill(signalName) {
      const record = running();
      if (record === undefined) return;
      if (signalName === "SIGKILL") await killProcess(record);
      else signal(record, signalName);
    },
    async restart() {
      if (running() !== undefined) await stop();
      await startServer(name, settings);
    },
    stop,
  };
}

async function bringUp(kind: ServerKind, settings: StackSettings, reporter: Reporter): Promise<void> {
  const begin = performance.now();
  const existing = readRecord(settings, kind.name);
  const running = existing !== undefined && isSameProcess(existing);
  if (running) requireSameSettings(kind, settings, existing);
  const record = running ? existing : await startFresh(kind, settings);
  await untilItAnswers(kind, settings, record);
  const how = running
    ? "was running"
    : `${existing === undefined ? "started" : "had crashed, started again"} in ${((performance.now() - begin) / 1000).toFixed(1)} s`;
  reporter.line(`${kind.name} ${record.version} ${how} (process ${record.pid}, port ${record.ports[0]})`);
}

async function startFresh(kind: ServerKind, settings: StackSettings): Promise<ProcessRecord> {
  await requireFree(kind.title, kind.ports(settings));
  requireSpace(settings.home, spareBytes);
  await kind.prepare(settings);
  return launch(kind, settings);
}

function requireSameSettings(kind: ServerKind, settings: StackSettings, record: ProcessRecord): void {
  const [wanted, running] = [portsOf(kind, settings).join(", "), record.ports.join(", ")];
  if (wanted !== running) {
    throw new StackProblem(
      `${kind.title} runs in ${settings.home} on ports ${running} and is wanted on ${wanted}; run down first, or set STACK_HOME to another folder`,
    );
  }
  if (kind.version(settings) !== record.version) {
    throw new StackProblem(`${kind.title} ${record.version} runs and ${kind.version(settings)} is wanted; run down first`);
  }
}

async function takeDown(kind: ServerKind, settings: StackSettings, reporter: Reporter): Promise<void> {
  const outcome = await stopProcess(kind, settings);
  if (outcome !== "was not running") reporter.line(`${kind.name} ${outcome}`);
}

async function serverStatus(kind: ServerKind, settings: StackSettings): Promise<ServerStatus> {
  const record = readRecord(settings, kind.name);
  const alive = record !== undefined && isSameProcess(record);
  return {
    name: kind.name,
    version: record?.version ?? kind.version(settings),
    state: alive ? await stateOfProcess(kind, settings) : record === undefined ? "stopped" : "crashed",
    ports: record?.ports ?? portsOf(kind, settings),
    pid: alive ? record.pid : undefined,
    residentBytes: alive ? residentBytes(record.pid) : undefined,
    uptimeMs: alive ? Date.now() - record.startedAtMs : undefined,
  };
}

async function stateOfProcess(kind: ServerKind, settings: StackSettings): Promise<ServerState> {
  return (await refusal(kind, settings)) === undefined ? "running" : "not answering";
}

function privateStacks(settings: StackSettings): StackSettings[] {
  const folder = privateStacksFolder(settings.home);
  return existsSync(folder) ? readdirSync(folder).map((name) => ({ ...settings, home: join(folder, name) })) : [];
}

function requireLinux(): void {
  if (process.platform !== "linux")
    throw new StackProblem("the local stack needs Linux (it tells processes apart by /proc); use docker compose here");
}
