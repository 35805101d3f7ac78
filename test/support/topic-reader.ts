import { randomUUID } from "node:crypto";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka, type KafkaMessage, logLevel } from "kafkajs";
import { patchIdleTimer } from "../../services/common/kafka/idle-timer.ts";
import { type WaitOptions, waitFor } from "./wait-for.ts";

/** A record as a foreign consumer sees it. `value` is decoded; for a topic without schema it is the bytes. */
export interface ReadRecord<T> {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timestampMs: number;
  readonly bytes: Buffer;
  readonly value: T;
}

export interface TopicReader<T> {
  /** Everything read so far: in order within a partition, and between partitions in the order of arrival. */
  readonly records: readonly ReadRecord<T>[];
  /** Waits until what was read satisfies the condition. */
  until(
    what: string,
    condition: (records: readonly ReadRecord<T>[]) => boolean,
    options?: WaitOptions,
  ): Promise<readonly ReadRecord<T>[]>;
  /** Waits until everything is read that is in the topic now: only then does what is not among the records not exist. */
  caughtUp(): Promise<readonly ReadRecord<T>[]>;
  close(): Promise<void>;
}

/**
 * Reads a topic from its beginning and goes on reading, in a group of its own, with the stock clients: what it sees is what any
 * consumer of the topic sees, whatever the code under test believes.
 */
export async function readTopic<T>(environment: Readonly<Record<string, string>>, topic: string): Promise<TopicReader<T>> {
  const { KAFKA_BROKERS = "", SCHEMA_REGISTRY_URL = "" } = environment;
  patchIdleTimer();
  const registry = new SchemaRegistry({ host: SCHEMA_REGISTRY_URL });
  const kafka = new Kafka({ brokers: KAFKA_BROKERS.split(","), clientId: "topic-reader", logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `topic-reader-${randomUUID()}`, maxWaitTimeInMs: 100 });
  const records: ReadRecord<T>[] = [];
  const positions = new Map<number, number>();
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      records.push(await readRecord<T>(registry, partition, message));
      positions.set(partition, Number(message.offset) + 1);
    },
  });
  return {
    records,
    until: async (what, condition, options) => {
      const seen = () => ({ count: records.length, newest: records.slice(-2).map(({ value }) => value) });
      await waitFor(`${topic}: ${what}`, seen, () => condition(records), options);
      return records;
    },
    caughtUp: async () => {
      const ends = await endsOf(kafka, topic);
      const behind = () => ends.filter(({ partition, end }) => (positions.get(partition) ?? 0) < end);
      await waitFor(`${topic}: the end of what is in it`, behind, ({ length }) => length === 0);
      return records;
    },
    close: () => consumer.disconnect(),
  };
}

async function endsOf(kafka: Kafka, topic: string): Promise<{ partition: number; end: number }[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => ({ partition, end: Number(high) }));
  } finally {
    await admin.disconnect();
  }
}

async function readRecord<T>(registry: SchemaRegistry, partition: number, message: KafkaMessage): Promise<ReadRecord<T>> {
  const bytes = message.value ?? Buffer.alloc(0);
  const framed = bytes.length > 5 && bytes[0] === 0;
  return {
    partition,
    offset: Number(message.offset),
    key: message.key?.toString() ?? "",
    headers: Object.fromEntries(Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)])),
    timestampMs: Number(message.timestamp),
    bytes,
    value: framed ? await registry.decode(bytes) : (bytes as T),
  };
}
