import { connect } from "node:net";
import { stackStatus, startServers, stopStack } from "../local/lifecycle.ts";
import type { Reporter } from "../local/reporter.ts";
import { addresses, readSettings, type StackSettings, serverNames } from "../local/settings.ts";

/** Kafka, Cassandra, the schema registry and Redis of this machine: found running, or started here. */
export interface LocalStack {
  /** Whether none of its servers ran before: then stopping them is up to whoever asked for them. */
  readonly startedHere: boolean;
  stop(): Promise<void>;
}

/**
 * Makes sure that all four answer. Servers that came from somewhere else (docker compose, on a machine where the local stack
 * cannot run) are used as they are when every port accepts connections.
 */
export async function ensureStack(reporter: Reporter): Promise<LocalStack> {
  const settings = readSettings();
  const stop = () => stopStack(settings, reporter);
  if (await everyPortAccepts()) return { startedHere: false, stop };
  const idle = (await stackStatus(settings)).every(({ state }) => state === "stopped" || state === "crashed");
  await startServers(serverNames, settings, reporter);
  return { startedHere: idle, stop };
}

/** Where the services connect, as their environment variables. */
export function stackEnvironment(settings: StackSettings = readSettings()): Record<string, string> {
  const where = addresses(settings);
  return {
    KAFKA_BROKERS: where.kafkaBrokers.join(","),
    SCHEMA_REGISTRY_URL: where.registryUrl,
    CASSANDRA_CONTACT_POINTS: where.cassandraContactPoints.map((host) => `${host}:${where.cassandraPort}`).join(","),
    CASSANDRA_DATACENTER: where.cassandraDataCenter,
    REDIS_URL: where.redisUrl,
  };
}

async function everyPortAccepts(): Promise<boolean> {
  const { ports } = readSettings();
  const needed = [ports.KAFKA_PORT, ports.CASSANDRA_PORT, ports.REGISTRY_PORT, ports.REDIS_PORT];
  return (await Promise.all(needed.map(accepts))).every((yes) => yes);
}

/** Whether somebody listens on a port of this machine. */
export function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const settle = (yes: boolean) => {
      socket.destroy();
      resolve(yes);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", () => settle(false));
  });
}
