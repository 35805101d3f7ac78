import { randomUUID } from "node:crypto";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka, type KafkaMessage, logLevel } from "kafkajs";
import { patchIdleTimer } from "../../services/common/kafka/idle-timer.ts";
import { type WaitOptions, waitFor } from "./wait-for.ts";

/** On a record of a test that cannot be decoded, and is read as bytes. */
export const poisonHeader = "poison";

/** A record as a foreign consumer sees it. `value` is decoded; for a topic without schema it is the bytes. */
export interface ReadRecord<T> {
  readonly topic: string;
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
  /** Drops what is not wanted any more, for a reader that lives long. */
  forget(isDone: (record: ReadRecord<T>) => boolean): void;
  close(): Promise<void>;
}

/**
 * Reads topics from their beginning and goes on reading, in a group of its own, with the stock clients: what it sees is what any
 * consumer of the topics sees, whatever the code under test believes.
 */
export async function readTopic<T>(
  environment: Readonly<Record<string, string>>,
  ...topics: readonly string[]
): Promise<TopicReader<T>> {
  const { KAFKA_BROKERS = "", SCHEMA_REGISTRY_URL = "" } = environment;
  patchIdleTimer();
  const registry = new SchemaRegistry({ host: SCHEMA_REGISTRY_URL });
  const kafka = new Kafka({ brokers: KAFKA_BROKERS.split(","), clientId: "topic-reader", logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: `topic-reader-${randomUUID()}`, maxWaitTimeInMs: 100 });
  let records: ReadRecord<T>[] = [];
  const positions = new Map<string, number>();
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      const place = `${topic}/${partition}`;
      // Nothing is committed: after a rebalance kafkajs begins anew.
      if (Number(message.offset) < (positions.get(place) ?? 0)) return;
      const record = await readRecord<T>(registry, { topic, partition }, message);
      records.push(record);
      positions.set(place, record.offset + 1);
    },
  });
  const names = topics.join(", ");
  return {
    get records() {
      return records;
    },
    until: async (what, condition, options) => {
      const seen = () => ({ count: records.length, newest: records.slice(-2).map(({ value }) => value) });
      await waitFor(`${names}: ${what}`, seen, () => condition(records), options);
      return records;
    },
    caughtUp: async () => {
      const ends = await endsOf(kafka, topics);
      const behind = () => ends.filter(({ place, end }) => (positions.get(place) ?? 0) < end);
      await waitFor(`${names}: the end of what is in it`, behind, ({ length }) => length === 0);
      return records;
    },
    forget: (isDone) => {
      records = records.filter((record) => !isDone(record));
    },
    close: () => consumer.disconnect(),
  };
}

async function endsOf(kafka: Kafka, topics: readonly string[]): Promise<{ place: string; end: number }[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const ofTopics = topics.map(async (topic) =>
      (await admin.fetchTopicOffsets(topic)).map(({ partition, high }) => ({
        place: `${topic}/${partition}`,
        end: Number(high),
      })),
    );
    return (await Promise.all(ofTopics)).flat();
  } finally {
    await admin.disconnect();
  }
}

async function readRecord<T>(
  registry: SchemaRegistry,
  { topic, partition }: { topic: string; partition: number },
  message: KafkaMessage,
): Promise<ReadRecord<T>> {
  const bytes = message.value ?? Buffer.alloc(0);
  // Whoever writes what nobody can decode marks it, so that a registry that fails is not taken for it.
  const framed = bytes.length > 5 && bytes[0] === 0 && message.headers?.[poisonHeader] === undefined;
  return {
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key?.toString() ?? "",
    headers: Object.fromEntries(Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)])),
    timestampMs: Number(message.timestamp),
    bytes,
    value: framed ? await registry.decode(bytes) : (bytes as T),
  };
}
