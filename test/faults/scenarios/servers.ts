import { Redis } from "ioredis";
import { type DetouredStack, type DetourWish, startDetouredStack } from "../../support/detoured-stack.ts";
import type { LoadOptions } from "../load.ts";
import type { Scenario } from "../scenario.ts";
import type { World } from "../world.ts";

/** There is work before, during and after a fault of some seconds. */
const longLoad: Partial<LoadOptions> = { refreshes: 30, pauseMs: 1_500 };

interface ServerFault extends Pick<Scenario, "name" | "title" | "settings"> {
  readonly detour: DetourWish;
  /** Breaks and mends, with the load under way. */
  hurt(world: World, stack: DetouredStack): Promise<void>;
}

/** A fault of a server, or of the wire to it, under load. */
function serverFault({ name, title, settings, detour, hurt }: ServerFault): Scenario {
  let stack: DetouredStack;
  return {
    name,
    title,
    ...(settings === undefined ? {} : { settings }),
    servers: async () => {
      stack = await startDetouredStack(`faults-${name}`, detour);
      return { services: stack.detoured, verifier: stack.direct, close: () => stack.close() };
    },
    async run(world) {
      await world.startLoad(longLoad);
      await world.calls(world.draw(30, 120));
      await hurt(world, stack);
    },
  };
}

/**
 * Kafka. What a broker's absence may repeat: a window of calls for a partition that was lost, and one for produce retries whose
 * acknowledgement was lost.
 */
const kafka = { detour: { own: ["kafka"] } } as const;

const kafkaScenarios: readonly Scenario[] = [
  serverFault({
    ...kafka,
    name: "kafka-killed",
    title: "kill -9 of the broker under load, and up again",
    async hurt(world, stack) {
      await stack.server("kafka").kill("SIGKILL");
      world.fault("kill -9 of the broker", { repeats: 2 });
      await stack.server("kafka").restart();
    },
  }),
  serverFault({
    ...kafka,
    name: "kafka-restarted",
    title: "an orderly restart of the broker under load",
    async hurt(world, stack) {
      world.fault("restart of the broker", { repeats: 2 });
      await stack.server("kafka").restart();
    },
  }),
  serverFault({
    ...kafka,
    name: "kafka-away-30s",
    title: "nobody reaches the broker for 30 s, connections are refused: every session ends",
    async hurt(world, stack) {
      await stack.wire("kafka").down();
      world.fault("the broker away for 30 s", { repeats: 2 });
      await world.sleep(30_000);
      await stack.wire("kafka").up();
    },
  }),
  serverFault({
    ...kafka,
    name: "kafka-silent-30s",
    title: "for 30 s nothing arrives at the broker or comes from it, and no connection ends",
    async hurt(world, stack) {
      for (const direction of ["toServer", "toClient"] as const) stack.wire("kafka").inject(direction, { blackHole: true });
      world.fault("the broker silent for 30 s", { repeats: 2 });
      await world.sleep(30_000);
      stack.wire("kafka").heal();
    },
  }),
  serverFault({
    ...kafka,
    name: "kafka-answers-lost",
    title: "the broker does what it is asked, and its answers are lost with their connections, for 15 s",
    async hurt(world, stack) {
      world.fault("answers of the broker lost for 15 s", { repeats: 3 });
      for (let cut = 0; cut < 30; cut += 1) {
        stack.wire("kafka").inject("toClient", { cutAfterBytes: world.draw(0, 2_000) });
        await world.sleep(500);
      }
      stack.wire("kafka").heal();
    },
  }),
  serverFault({
    ...kafka,
    name: "kafka-slow",
    title: "every byte to and from the broker takes 300 ms longer, for 20 s",
    async hurt(world, stack) {
      for (const direction of ["toServer", "toClient"] as const) stack.wire("kafka").inject(direction, { latencyMs: 300 });
      world.fault("600 ms more to the broker for 20 s", { repeats: 2 });
      await world.sleep(20_000);
      stack.wire("kafka").heal();
    },
  }),
];

const cassandra = { detour: { own: ["cassandra"] } } as const;
const cassandraWire = { detour: { shared: ["cassandra"] } } as const;

const cassandraScenarios: readonly Scenario[] = [
  serverFault({
    ...cassandra,
    name: "cassandra-killed",
    title: "kill -9 of Cassandra under load, and up again",
    async hurt(world, stack) {
      await stack.server("cassandra").kill("SIGKILL");
      world.fault("kill -9 of Cassandra");
      await stack.server("cassandra").restart();
    },
  }),
  serverFault({
    ...cassandra,
    name: "cassandra-restarted",
    title: "an orderly restart of Cassandra under load",
    async hurt(world, stack) {
      world.fault("restart of Cassandra");
      await stack.server("cassandra").restart();
    },
  }),
  serverFault({
    ...cassandraWire,
    name: "cassandra-away-60s",
    title: "nobody reaches Cassandra for 60 s, connections are refused",
    async hurt(world, stack) {
      await stack.wire("cassandra").down();
      world.fault("Cassandra away for 60 s");
      await world.sleep(60_000);
      await stack.wire("cassandra").up();
    },
  }),
  serverFault({
    ...cassandraWire,
    name: "cassandra-silent-30s",
    title: "for 30 s nothing comes from Cassandra, and no connection ends: writes may be done, and nobody knows",
    async hurt(world, stack) {
      stack.wire("cassandra").inject("toClient", { blackHole: true });
      world.fault("Cassandra silent for 30 s");
      await world.sleep(30_000);
      stack.wire("cassandra").heal();
    },
  }),
  serverFault({
    ...cassandraWire,
    name: "cassandra-slow",
    title: "every answer of Cassandra takes 5 s longer, for 30 s",
    async hurt(world, stack) {
      stack.wire("cassandra").inject("toClient", { latencyMs: 5_000 });
      world.fault("Cassandra 5 s slower for 30 s");
      await world.sleep(30_000);
      stack.wire("cassandra").heal();
    },
  }),
  serverFault({
    ...cassandraWire,
    name: "cassandra-answers-lost",
    title: "Cassandra writes what it is asked to, and its answers are lost with their connections, for 15 s",
    async hurt(world, stack) {
      world.fault("answers of Cassandra lost for 15 s");
      for (let cut = 0; cut < 30; cut += 1) {
        stack.wire("cassandra").inject("toClient", { cutAfterBytes: world.draw(0, 400) });
        await world.sleep(500);
      }
      stack.wire("cassandra").heal();
    },
  }),
  serverFault({
    ...cassandraWire,
    name: "cassandra-narrow",
    title: "the wire to Cassandra takes 20 kB a second, for 20 s",
    async hurt(world, stack) {
      stack.wire("cassandra").inject("toServer", { bytesPerSecond: 20_000 });
      world.fault("20 kB a second to Cassandra for 20 s");
      await world.sleep(20_000);
      stack.wire("cassandra").heal();
    },
  }),
];

/** README, Failure modes: with one ingress there is nobody else who could grant what it has not seen, so the hourly limit holds. */
const redis = { detour: { own: ["redis"] } } as const;
const redisWire = { detour: { shared: ["redis"] } } as const;

/** Says something to the server itself, past the wire. */
async function tellRedis(stack: DetouredStack, ...words: [string, ...string[]]): Promise<void> {
  const client = new Redis(stack.direct.REDIS_URL ?? "");
  try {
    await client.call(...words);
  } finally {
    client.disconnect();
  }
}

const redisScenarios: readonly Scenario[] = [
  serverFault({
    ...redis,
    name: "redis-killed",
    title: "kill -9 of Redis under load, and up again",
    async hurt(world, stack) {
      await stack.server("redis").kill("SIGKILL");
      world.fault("kill -9 of Redis");
      await world.sleep(5_000);
      await stack.server("redis").restart();
    },
  }),
  serverFault({
    ...redis,
    name: "redis-flushed",
    title: "Redis forgets everything, three times",
    async hurt(world, stack) {
      for (let time = 0; time < 3; time += 1) {
        await tellRedis(stack, "FLUSHALL");
        world.fault("FLUSHALL");
        await world.sleep(3_000);
      }
    },
  }),
  serverFault({
    ...redis,
    name: "redis-read-only",
    title: "Redis becomes a replica of nobody and refuses writes, for 15 s",
    async hurt(world, stack) {
      // Nobody listens on port 1.
      await tellRedis(stack, "REPLICAOF", "127.0.0.1", "1");
      world.fault("Redis read-only for 15 s");
      await world.sleep(15_000);
      await tellRedis(stack, "REPLICAOF", "NO", "ONE");
    },
  }),
  serverFault({
    ...redisWire,
    name: "redis-away-30s",
    title: "nobody reaches Redis for 30 s",
    async hurt(world, stack) {
      await stack.wire("redis").down();
      world.fault("Redis away for 30 s");
      await world.sleep(30_000);
      await stack.wire("redis").up();
    },
  }),
  serverFault({
    ...redisWire,
    name: "redis-slow",
    title: "every answer of Redis takes 3 s longer, for 20 s",
    async hurt(world, stack) {
      stack.wire("redis").inject("toClient", { latencyMs: 3_000 });
      world.fault("Redis 3 s slower for 20 s");
      await world.sleep(20_000);
      stack.wire("redis").heal();
    },
  }),
];

const registryScenarios: readonly Scenario[] = [
  serverFault({
    detour: { shared: ["registry"] },
    name: "registry-away",
    title: "the schema registry is away while the fetcher is killed and started: it waits, and nothing becomes a dead letter",
    async hurt(world, stack) {
      await stack.wire("registry").down();
      world.fault("the registry away");
      await world.kill("fetcher");
      const started = world.fleet.start("fetcher");
      await world.sleep(8_000);
      await stack.wire("registry").up();
      await started;
    },
  }),
];

export const serverScenarios: readonly Scenario[] = [
  ...kafkaScenarios,
  ...cassandraScenarios,
  ...redisScenarios,
  ...registryScenarios,
];
