import { stackEnvironment } from "../../deploy/development/stack.ts";
import { handleOf, type ServerHandle, startServers } from "../../deploy/local/lifecycle.ts";
import { freePorts } from "../../deploy/local/ports.ts";
import { privateSettings, removePrivateStack } from "../../deploy/local/private.ts";
import { readSettings, type ServerName, type StackSettings } from "../../deploy/local/settings.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/**
 * Servers of one's own that may be killed, and a wire to each of them that may break. Whoever checks the result connects directly,
 * by `direct`; whoever is tested goes by `detoured`. All other servers are the shared stack's.
 */
export interface DetouredStack {
  /** One of those that were asked for; throws for another. */
  server(name: ServerName): ServerHandle;
  wire(name: ServerName): TcpProxy;
  /** Environment variables of services. */
  readonly direct: Readonly<Record<string, string>>;
  readonly detoured: Readonly<Record<string, string>>;
  /** Stops the servers and deletes their data. */
  close(): Promise<void>;
}

export interface DetourWish {
  /** Servers to be started for this alone. */
  readonly own?: readonly ServerName[];
  /** Servers of the shared stack that are to be reached by a wire. Not Kafka: its clients go where the broker tells them to. */
  readonly shared?: readonly Exclude<ServerName, "kafka">[];
}

const portNames = {
  kafka: "KAFKA_PORT",
  cassandra: "CASSANDRA_PORT",
  registry: "REGISTRY_PORT",
  redis: "REDIS_PORT",
} as const satisfies Record<ServerName, keyof StackSettings["ports"]>;
const host = "127.0.0.1";

export async function startDetouredStack(label: string, { own = [], shared = [] }: DetourWish): Promise<DetouredStack> {
  const common = readSettings();
  const alone = await privateSettings(label);
  const wires = new Map<ServerName, TcpProxy>();
  const directPorts = { ...common.ports };
  const detouredPorts = { ...common.ports };
  let settings: StackSettings = alone;
  for (const name of [...own, ...shared]) {
    const port = portNames[name];
    directPorts[port] = own.includes(name) ? alone.ports[port] : common.ports[port];
    // Kafka needs a listener of its own that tells its clients of the wire.
    const [listenPort = 0] = name === "kafka" ? await freePorts(1) : [directPorts[port]];
    const wire = await TcpProxy.open({ host, port: listenPort });
    wires.set(name, wire);
    detouredPorts[port] = wire.port;
    if (name === "kafka") settings = { ...alone, kafkaDetour: { listenPort, advertisedPort: wire.port } };
  }
  const close = async () => {
    await Promise.all([...wires.values()].map((wire) => wire.down()));
    await removePrivateStack(settings);
  };
  try {
    await startServers(own, settings);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    server(name) {
      if (!own.includes(name)) throw new Error(`${name} is not a server of one's own here`);
      return handleOf(name, settings);
    },
    wire(name) {
      const wire = wires.get(name);
      if (wire === undefined) throw new Error(`there is no wire to ${name} here`);
      return wire;
    },
    direct: stackEnvironment({ ...common, ports: directPorts }),
    detoured: stackEnvironment({ ...common, ports: detouredPorts }),
    close,
  };
}
