import { stackEnvironment } from "../../deploy/development/stack.ts";
import { handleOf, type ServerHandle, startServers } from "../../deploy/local/lifecycle.ts";
import { freePorts } from "../../deploy/local/ports.ts";
import { privateSettings, removePrivateStack } from "../../deploy/local/private.ts";
import type { Reporter } from "../../deploy/local/reporter.ts";
import { type ServerName, type StackSettings, serverNames } from "../../deploy/local/settings.ts";
import { TcpProxy } from "./tcp-proxy.ts";

/**
 * Servers of one's own that may be killed, and a wire to each of them that may break. Whoever checks the result connects directly,
 * by `direct`; whoever is tested goes by `detoured`.
 */
export interface DetouredStack {
  readonly servers: Readonly<Record<ServerName, ServerHandle>>;
  readonly wires: Readonly<Record<ServerName, TcpProxy>>;
  /** Environment variables of services. */
  readonly direct: Readonly<Record<string, string>>;
  readonly detoured: Readonly<Record<string, string>>;
  /** Stops the servers and deletes their data. */
  close(): Promise<void>;
}

/** Takes some fifteen seconds and 2.5 GiB. */
export async function startDetouredStack(label: string, reporter?: Reporter): Promise<DetouredStack> {
  const plain = await privateSettings(label);
  // Kafka's clients go where the broker tells them to: it needs a listener that tells them of the wire.
  const [listenPort = 0] = await freePorts(1);
  const host = "127.0.0.1";
  const wires = {
    kafka: await TcpProxy.open({ host, port: listenPort }),
    cassandra: await TcpProxy.open({ host, port: plain.ports.CASSANDRA_PORT }),
    registry: await TcpProxy.open({ host, port: plain.ports.REGISTRY_PORT }),
    redis: await TcpProxy.open({ host, port: plain.ports.REDIS_PORT }),
  };
  const settings: StackSettings = { ...plain, kafkaDetour: { listenPort, advertisedPort: wires.kafka.port } };
  const close = async () => {
    await Promise.all(Object.values(wires).map((wire) => wire.down()));
    await removePrivateStack(settings);
  };
  try {
    await startServers(serverNames, settings, reporter);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    servers: {
      kafka: handleOf("kafka", settings),
      cassandra: handleOf("cassandra", settings),
      registry: handleOf("registry", settings),
      redis: handleOf("redis", settings),
    },
    wires,
    direct: stackEnvironment(settings),
    detoured: stackEnvironment({ ...settings, ports: { ...settings.ports, ...wirePorts(wires) } }),
    close,
  };
}

function wirePorts(wires: Readonly<Record<ServerName, TcpProxy>>) {
  return {
    KAFKA_PORT: wires.kafka.port,
    CASSANDRA_PORT: wires.cassandra.port,
    REGISTRY_PORT: wires.registry.port,
    REDIS_PORT: wires.redis.port,
  };
}
