import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { codecContract } from "../simulation/contracts/codec-contract.ts";
import { logContract } from "../simulation/contracts/log-contract.ts";
import { tableContract } from "../simulation/contracts/table-contract.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";

/** What the simulation's servers keep (test/unit/simulation/contracts.test.ts), kept by the real ones. */
const logger = createLogger("contract", "silent");
const requestTimeoutMs = 5_000;

let environment: TestEnvironment;
let cassandra: Cassandra;
let producer: RecordProducer;
let codec: Codec;
let number = 0;

const kafka = () =>
  createKafka({ brokers: (environment.env.KAFKA_BROKERS ?? "").split(","), clientId: "contract", requestTimeoutMs, logger });

beforeAll(async () => {
  environment = await createEnvironment("contract");
  const { env, topics } = environment;
  cassandra = await connectCassandra({
    contactPoints: [env.CASSANDRA_CONTACT_POINTS ?? ""],
    datacenter: env.CASSANDRA_DATACENTER ?? "",
    keyspace: env.CASSANDRA_KEYSPACE ?? "",
    logger,
  });
  producer = await createProducer(kafka(), { topics, logger, requestTimeoutMs });
  const uses = topics.all.filter(({ schema }) => schema !== null);
  codec = await createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses });
});

afterAll(async () => {
  await producer?.close();
  await cassandra?.close();
  await environment?.close();
});

describe("Kafka, as the simulation has it", () => {
  it.each(logContract)("$name", async ({ holds }) => {
    const newGroup = (): string => `${environment.name}.contract-${++number}`;
    await holds({ kafka: kafka(), topics: environment.topics, producer, newGroup, pause: (ms) => delay(ms) });
  });
});

describe("Cassandra, as the simulation has it", () => {
  it.each(tableContract)("$name", async ({ holds }) => {
    await holds({ cassandra, number: () => ++number });
  });
});

describe("the codec, as the simulation has it", () => {
  it.each(codecContract)("$name", async ({ holds }) => {
    await holds({ codec, topics: environment.topics });
  });
});
