import { randomBytes } from "node:crypto";
import type { Admin, IHeaders, Kafka, Producer } from "kafkajs";
import { systemClock } from "../../services/common/clock.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createDeadLetters, type DeadLetters } from "../../services/common/kafka/consume/dead-letters.ts";
import type { GroupTiming } from "../../services/common/kafka/consume/group-work.ts";
import type { Codec, DecodeResult, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { loadTopics, type TopicDefinition, type Topics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";
import { waitFor } from "../support/wait-for.ts";

/** Short, so that a member that is gone is missed soon. */
export const timing: GroupTiming = {
  sessionTimeoutMs: 6_000,
  rebalanceTimeoutMs: 10_000,
  heartbeatIntervalMs: 500,
  requestTimeoutMs: 2_000,
};

/** Values are JSON texts; `?` cannot be decoded, `unknown` has a schema that the registry does not know. */
export const jsonCodec: Codec = {
  encode: (_topic, value) => Buffer.from(JSON.stringify(value)),
  decode: <T>(_topic: string, value: Buffer | null): DecodeResult<T> => {
    const text = value?.toString() ?? "?";
    if (text === "unknown") return { ok: false, cause: "unknown_schema", message: "no such schema" };
    if (text === "?") return { ok: false, cause: "undecodable", message: "not JSON" };
    return { ok: true, value: JSON.parse(text) };
  },
};

export interface LogLine extends Readonly<Record<string, unknown>> {
  readonly event: string;
}

/** What every consumer of a test needs; metrics, log and failures of its own. */
export function member(deadLetters: DeadLetters) {
  const logs: LogLine[] = [];
  const failures: unknown[] = [];
  return {
    codec: jsonCodec,
    deadLetters,
    timing,
    clock: systemClock,
    metrics: new Metrics("test"),
    logger: createLogger("test", "debug", { write: (line) => void logs.push(JSON.parse(line)) }),
    fail: (cause: unknown) => void failures.push(cause),
    logs,
    failures,
  };
}

/** Topics of one test, deleted by `close`. */
export interface Corner {
  readonly name: string;
  readonly topics: Topics;
  readonly admin: Admin;
  readonly deadLetters: DeadLetters;
  readonly producer: RecordProducer;
  /** A client of its own for each member: clients share what they know of a group's offsets. */
  client(): Kafka;
  /** Creates a topic as `deploy/topics.yaml` has it, but with a name of its own, so many partitions, and maybe another delay. */
  topic(definition: TopicDefinition, partitions: number, delayMs?: number | null): Promise<TopicDefinition>;
  /** Deletes the topic and creates it again, empty. */
  recreate(topic: TopicDefinition): Promise<void>;
  /** Appends values, as JSON, to one partition. Returns the offset of the first. */
  produce(topic: TopicDefinition, partition: number, values: readonly unknown[]): Promise<number>;
  /** Appends messages as they are. */
  produceRaw(topic: TopicDefinition, messages: readonly RawMessage[]): Promise<void>;
  /** Appends values to partition 0, and the marker that ends their transaction. */
  transaction(topic: TopicDefinition, values: readonly string[], end: "commit" | "abort"): Promise<void>;
  /** Commits an offset for partition 0 of a topic, as a member of the group. */
  commit(groupId: string, topic: TopicDefinition, offset: number): Promise<void>;
  /** What the group has committed, by partition; -1 for nothing. */
  committed(groupId: string, topic: TopicDefinition): Promise<number[]>;
  /** The dead letters of a topic, once there are so many, by their offset in it. */
  buried(topic: TopicDefinition, count: number): Promise<DeadLetter[]>;
  close(): Promise<void>;
}

export interface DeadLetter {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, string>>;
}

interface RawMessage {
  readonly partition: number;
  readonly key: string | Buffer | null;
  readonly value: string | Buffer | null;
  readonly headers?: IHeaders;
}

export async function createCorner(test: string): Promise<Corner> {
  const name = `consume-${test}-${randomBytes(3).toString("hex")}`;
  const topics = loadTopics({ prefix: `${name}.` });
  const quiet = createLogger("corner", "silent");
  const client = (requestTimeoutMs = timing.requestTimeoutMs): Kafka =>
    createKafka({
      brokers: (process.env.KAFKA_BROKERS ?? "127.0.0.1:9092").split(","),
      clientId: name,
      requestTimeoutMs,
      logger: quiet,
    });
  // A loaded broker takes its time to create topics, and to delete them.
  const kafka = client(60_000);
  const admin = kafka.admin();
  const raw = kafka.producer({
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  await Promise.all([admin.connect(), raw.connect()]);
  const created: string[] = [];
  const create = async (definition: TopicDefinition): Promise<TopicDefinition> => {
    created.push(definition.name);
    await admin.createTopics({ waitForLeaders: false, topics: [topicConfig(definition)] });
    // The broker answers before it serves them.
    const offsets = () => admin.fetchTopicOffsets(definition.name);
    await waitFor(`${definition.name} to be served`, offsets, ({ length }) => length === definition.partitions);
    return definition;
  };
  await create(topics.deadLetter);
  const producer = await createProducer(client(), { topics, logger: quiet, requestTimeoutMs: timing.requestTimeoutMs });
  return {
    name,
    topics,
    admin,
    producer,
    client: () => client(),
    deadLetters: createDeadLetters({ producer, topics, metrics: new Metrics("test"), service: "test", groupId: name }),
    topic: (definition, partitions, delayMs = definition.delayMs) =>
      create({ ...definition, name: `${definition.name}.${created.length}`, partitions, delayMs }),
    async recreate(topic) {
      await admin.deleteTopics({ topics: [topic.name] });
      const listed = async () => (await admin.listTopics()).includes(topic.name);
      await waitFor(`${topic.name} to be gone`, listed, (there) => !there);
      await create(topic);
    },
    produce: (topic, partition, values) => produce(raw, topic, { partition, values }),
    async produceRaw(topic, messages) {
      await raw.send({ topic: topic.name, acks: -1, messages: messages.map((message) => ({ headers: {}, ...message })) });
    },
    transaction: (topic, values, end) => transaction(client(), topic, { values, end }),
    commit: (groupId, topic, offset) => commit(client(), { groupId, topic, offset }),
    async committed(groupId, topic) {
      const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic.name] });
      const sorted = offsets?.partitions.toSorted((a, b) => a.partition - b.partition) ?? [];
      return sorted.map(({ offset }) => Number(offset));
    },
    buried: (topic, count) => buried(client(), { letters: topics.deadLetter, of: topic }, count),
    async close() {
      await producer.close();
      await admin.deleteTopics({ topics: [...new Set(created)] });
      await Promise.all([admin.disconnect(), raw.disconnect()]);
    },
  };
}

function topicConfig({ name, partitions, maxMessageBytes, timestampType }: TopicDefinition) {
  const settings = { "max.message.bytes": String(maxMessageBytes), "message.timestamp.type": timestampType };
  return {
    topic: name,
    numPartitions: partitions,
    configEntries: Object.entries(settings).map(([key, value]) => ({ name: key, value })),
  };
}

async function produce(
  producer: Producer,
  topic: TopicDefinition,
  { partition, values }: { partition: number; values: readonly unknown[] },
): Promise<number> {
  const messages = values.map((value) => ({ partition, key: "key", value: JSON.stringify(value) }));
  const [answer] = await producer.send({ topic: topic.name, acks: -1, messages });
  return Number(answer?.baseOffset);
}

async function transaction(
  kafka: Kafka,
  topic: TopicDefinition,
  { values, end }: { values: readonly string[]; end: "commit" | "abort" },
): Promise<void> {
  const transactionalId = `${topic.name}-${randomBytes(3).toString("hex")}`;
  const producer = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1, retry: { initialRetryTime: 30 } });
  await producer.connect();
  try {
    const open = await producer.transaction();
    await open.send({ topic: topic.name, acks: -1, messages: values.map((value) => ({ key: "key", value, partition: 0 })) });
    await open[end]();
  } finally {
    await producer.disconnect();
  }
}

async function commit(
  kafka: Kafka,
  { groupId, topic, offset }: { groupId: string; topic: TopicDefinition; offset: number },
): Promise<void> {
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 50 });
  await consumer.connect();
  try {
    await consumer.subscribe({ topic: topic.name });
    await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async () => undefined });
    // Else it reads from there, and corrects an offset that is outside the log.
    consumer.pause([{ topic: topic.name }]);
    await consumer.commitOffsets([{ topic: topic.name, partition: 0, offset: String(offset) }]);
  } finally {
    await consumer.disconnect();
  }
}

/** Read with a stock consumer. */
async function buried(
  kafka: Kafka,
  { letters, of }: { letters: TopicDefinition; of: TopicDefinition },
  count: number,
): Promise<DeadLetter[]> {
  const consumer = kafka.consumer({ groupId: `${letters.name}-${randomBytes(3).toString("hex")}`, maxWaitTimeInMs: 50 });
  const found: DeadLetter[] = [];
  await consumer.connect();
  try {
    await consumer.subscribe({ topic: letters.name, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachMessage: async ({ message: { key, value, headers } }) => {
        if (headers?.dead_letter_topic?.toString() === of.name) found.push({ key, value, headers: texts(headers) });
      },
    });
    await waitFor(
      `${count} dead letters of ${of.name}`,
      () => found.length,
      (length) => length >= count,
    );
  } finally {
    await consumer.disconnect();
  }
  return found.toSorted((a, b) => Number(a.headers.dead_letter_offset) - Number(b.headers.dead_letter_offset));
}

function texts(headers: IHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
