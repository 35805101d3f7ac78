import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import kafkajs, { type Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { AbandonedError } from "../../services/common/errors.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import type { OutgoingRecord, RecordProducer, SendResult } from "../../services/common/kafka/contracts.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { provisionTopics } from "../../services/common/kafka/provision/topics.ts";
import { loadTopics, type TopicDefinition, type Topics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";
import { type ReadRecord, readTopic } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";

const environment = stackEnvironment();
const logger = createLogger("test", "silent");
const connection = { brokers: (environment.KAFKA_BROKERS ?? "").split(","), clientId: "kafka-produce-test", logger };
const kafka = createKafka({ ...connection, requestTimeoutMs: 3_000 });
/** A loaded broker takes its time to create topics, and to delete them. */
const patient = createKafka({ ...connection, requestTimeoutMs: 60_000 });
const admin = patient.admin();
const topics = uniqueTopics();
const { tokenState, refreshCompleted, tokenOutcome, watchdog, refreshRequested, tokenRequested } = topics;
let producer: RecordProducer;

beforeAll(async () => {
  await admin.connect();
  await provisionTopics(patient, { topics, replicationFactor: 1, dryRun: false });
});
afterAll(async () => {
  await admin.deleteTopics({ topics: topics.all.map(({ name }) => name) });
  await admin.disconnect();
});
beforeEach(async () => {
  producer = await createProducer(kafka, { topics, logger, requestTimeoutMs: 3_000 });
});
afterEach(() => producer.close());

function uniqueTopics(): Topics {
  return loadTopics({ prefix: `kafka-produce-${randomBytes(4).toString("hex")}.` });
}

function recordOf(topic: TopicDefinition, key: string, value: string | Buffer): OutgoingRecord {
  return { topic: topic.name, key, value: Buffer.from(value) };
}

async function configure(topic: TopicDefinition, settings: Record<string, string>): Promise<void> {
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
  const type = kafkajs.ConfigResourceTypes.TOPIC;
  await admin.alterConfigs({ validateOnly: false, resources: [{ type, name: topic.name, configEntries }] });
}

/** A broker works by a changed setting a little after it has said that it is changed. */
async function untilRefused(probe: OutgoingRecord): Promise<void> {
  await waitFor(
    "the changed setting",
    () => producer.send(probe, 3_000),
    (result) => !result.ok,
  );
}

/** Reads the topic until it has as many records as were ever appended, and returns them. */
async function wholeTopic(
  topic: TopicDefinition,
  client: Kafka = kafka,
  brokers = environment,
): Promise<readonly ReadRecord<Buffer>[]> {
  const ends = client.admin();
  await ends.connect();
  const offsets = await ends.fetchTopicOffsets(topic.name);
  await ends.disconnect();
  const count = offsets.reduce((sum, { high }) => sum + Number(high), 0);
  const reader = await readTopic<Buffer>(brokers, topic.name);
  try {
    return await reader.until(`${count} records`, (records) => records.length >= count);
  } finally {
    await reader.close();
  }
}

function texts(records: readonly ReadRecord<Buffer>[]): string[] {
  return records.map(({ bytes }) => bytes.toString());
}

describe("deliver", () => {
  it("says of each record of a call where it went and when the broker appended it", async () => {
    const records = Array.from({ length: 200 }, (_, index) => recordOf(tokenState, `key-${index % 40}`, `value-${index}`));
    const results = await producer.deliver(records);
    const read = new Map((await wholeTopic(tokenState)).map((one) => [`${one.partition}/${one.offset}`, one]));
    expect(new Set(results.map((result) => result.ok && result.partition)).size).toBeGreaterThan(5);
    for (const [index, result] of results.entries()) {
      const found = result.ok ? read.get(`${result.partition}/${result.offset}`) : undefined;
      const { key, value } = records[index] as OutgoingRecord;
      expect(found).toMatchObject({ key, bytes: value, partition: partitionOf(key, tokenState.partitions) });
      expect(result).toMatchObject({ appendTimeMs: found?.timestampMs });
    }
  });

  it("keeps the order of submission for each key when many deliver at once", async () => {
    const ledger = new Map<string, string[]>();
    const deliveries = Array.from({ length: 1_500 }, (_, index) => {
      const key = `key-${index % 7}`;
      const values = [`${index}a`, `${index}b`].slice(0, 1 + (index % 2));
      ledger.set(key, [...(ledger.get(key) ?? []), ...values]);
      return producer.deliver(values.map((value) => recordOf(tokenRequested, key, value)));
    });
    await Promise.all(deliveries);
    const read = await wholeTopic(tokenRequested);
    for (const [key, values] of ledger) expect(texts(read.filter((one) => one.key === key))).toEqual(values);
  });

  it("carries headers, as text and as bytes", async () => {
    const headers = { ce_id: "id-1", traceparent: Buffer.from("00-ab") };
    const [result] = await producer.deliver([{ ...recordOf(tokenOutcome, "headers", "value"), headers }]);
    const read = (await wholeTopic(tokenOutcome)).find((one) => one.key === "headers");
    expect(result).toMatchObject({ ok: true, offset: read?.offset });
    expect(read?.headers).toEqual({ ce_id: "id-1", traceparent: "00-ab" });
  });

  it("keeps what may act no more when kafkajs is about to write it, and sends what was to go with it", async () => {
    const key = "about to be written";
    let asked = 0;
    const mayAct = () => {
      asked += 1;
      return asked < 2;
    };
    const kept = producer.deliver([recordOf(tokenOutcome, key, "kept")], { mayAct });
    const sent = producer.deliver([recordOf(tokenOutcome, key, "sent")]);
    await expect(kept).rejects.toThrow(AbandonedError);
    expect(await sent).toMatchObject([{ ok: true }]);
    expect(texts((await wholeTopic(tokenOutcome)).filter((one) => one.key === key))).toEqual(["sent"]);
  });

  it("resolves with nothing when there is nothing to deliver", async () => {
    expect(await producer.deliver([])).toEqual([]);
  });

  it("refuses a topic that is not in deploy/topics.yaml, and produces none of the call", async () => {
    const [known, unknown] = [
      recordOf(tokenOutcome, "unknown-topic", "1"),
      { topic: "other", key: "a", value: Buffer.from("1") },
    ];
    await expect(producer.deliver([known, unknown])).rejects.toThrow("deploy/topics.yaml has no topic other");
    await producer.deliver([recordOf(tokenOutcome, "unknown-topic", "2")]);
    expect(texts((await wholeTopic(tokenOutcome)).filter((one) => one.key === "unknown-topic"))).toEqual(["2"]);
  });
});

describe("a record that is too large", () => {
  /** Key of one byte, no headers: what surrounds the value is 61 bytes of batch and 14 of record. */
  const largestValue = watchdog.maxMessageBytes - 75;

  it("is told from the largest one that fits to the byte, before it is queued", async () => {
    const [fits, tooLarge] = [Buffer.alloc(largestValue, "f"), Buffer.alloc(largestValue + 1, "t")];
    const results = await producer.deliver([recordOf(watchdog, "k", fits), recordOf(watchdog, "k", tooLarge)]);
    expect(results).toMatchObject([{ ok: true }, { ok: false, reason: "too_large" }]);
    expect(await producer.send(recordOf(watchdog, "k", tooLarge), 3_000)).toMatchObject({ ok: false, reason: "too_large" });
  });

  it("is too large for the broker at the same byte", async () => {
    const careless = {
      ...topics,
      all: topics.all.map((topic) => ({ ...topic, maxMessageBytes: topic.maxMessageBytes + 1_000 })),
    };
    const trusting = await createProducer(kafka, { topics: careless, logger, requestTimeoutMs: 3_000 });
    const result = await trusting.send(recordOf(watchdog, "k", Buffer.alloc(largestValue + 1)), 3_000);
    await trusting.close();
    expect(result).toEqual({ ok: false, reason: "too_large", message: "the broker answered MESSAGE_TOO_LARGE" });
  });

  it("alone is refused when the broker refuses its batch; the others arrive once, in order", async () => {
    await configure(refreshRequested, { "max.message.bytes": "3000" });
    await untilRefused(recordOf(refreshRequested, "probe", "x".repeat(4_000)));
    const values = Array.from({ length: 41 }, (_, index) => (index === 17 ? "x".repeat(4_000) : `value-${index}`));
    const results = await producer.deliver(values.map((value) => recordOf(refreshRequested, "one-key", value)));
    const refused = results.flatMap((result, index) => (result.ok ? [] : [[index, result.reason]]));
    expect(refused).toEqual([[17, "too_large"]]);
    const read = (await wholeTopic(refreshRequested)).filter((one) => one.key === "one-key");
    expect(texts(read)).toEqual(values.filter((_, index) => index !== 17));
  });

  it("is refused too when it is larger than a segment of the log", async () => {
    const record = recordOf(refreshRequested, "segment", Buffer.alloc(1_500_000));
    await configure(refreshRequested, { "segment.bytes": "1048576", "max.message.bytes": "2097152" });
    const send = () => producer.send(record, 3_000);
    const result = await waitFor(
      "the larger limit",
      send,
      (answer) => !answer.ok && !answer.message.includes("MESSAGE_TOO_LARGE"),
    );
    expect(result).toEqual({ ok: false, reason: "too_large", message: "the broker answered RECORD_LIST_TOO_LARGE" });
  });
});

describe("a partition that the broker refuses", () => {
  // The broker refuses times of the sender that are far in the past, as long as the topic is to keep them.
  beforeEach(async () => {
    const now = Date.now;
    vi.spyOn(Date, "now").mockImplementation(() => now() - 600_000);
    await configure(refreshCompleted, { "message.timestamp.type": "CreateTime", "message.timestamp.before.max.ms": "60000" });
    await untilRefused(recordOf(refreshCompleted, "probe", "probe"));
  });
  afterEach(() => vi.restoreAllMocks());
  const heal = () => configure(refreshCompleted, { "message.timestamp.type": "LogAppendTime" });

  it("is told as not sent, with the broker's reason", async () => {
    const result = await producer.send(recordOf(refreshCompleted, "send", "value"), 3_000);
    expect(result).toEqual({ ok: false, reason: "not_sent", message: "the broker answered INVALID_TIMESTAMP" });
  });

  it("neither holds the others nor has them sent again, and its own records arrive once when it takes them", async () => {
    const key = `mixed-${randomBytes(4).toString("hex")}`;
    let settled = false;
    const mixed = producer.deliver([recordOf(tokenState, key, "0"), recordOf(refreshCompleted, key, "held")]);
    void mixed.finally(() => {
      settled = true;
    });
    for (let round = 1; round <= 20; round += 1) await producer.deliver([recordOf(tokenState, key, String(round))]);
    expect(settled).toBe(false);
    await heal();
    expect(await mixed).toMatchObject([{ ok: true }, { ok: true }]);
    const others = (await wholeTopic(tokenState)).filter((one) => one.key === key);
    expect(texts(others)).toEqual(Array.from({ length: 21 }, (_, round) => String(round)));
    expect(texts((await wholeTopic(refreshCompleted)).filter((one) => one.key === key))).toEqual(["held"]);
  });

  it.each([
    ["the signal aborts", (stop: AbortController) => ({ signal: stop.signal })],
    ["it may not act any more", (stop: AbortController) => ({ mayAct: () => !stop.signal.aborted })],
  ])("leaves a delivery alone once %s: nothing of it is sent later", async (_when, optionsOf) => {
    const key = `abandoned-${randomBytes(4).toString("hex")}`;
    const stop = new AbortController();
    const abandoned = producer.deliver([recordOf(refreshCompleted, key, "abandoned")], optionsOf(stop));
    abandoned.catch(() => undefined);
    await producer.send(recordOf(refreshCompleted, key, "a refusal, after the first try of the other"), 3_000);
    stop.abort();
    await expect(abandoned).rejects.toThrow(AbandonedError);
    await heal();
    await producer.deliver([recordOf(refreshCompleted, key, "later")]);
    expect(texts((await wholeTopic(refreshCompleted)).filter((one) => one.key === key))).toEqual(["later"]);
  });

  it("leaves a delivery alone that is given up while the refusal is on its way", async () => {
    const key = `given-up-${randomBytes(4).toString("hex")}`;
    const stop = new AbortController();
    let asked = 0;
    const mayAct = () => {
      asked += 1;
      // The second time its records are being put on the connection.
      if (asked === 2) setImmediate(() => stop.abort());
      return true;
    };
    const delivery = producer.deliver([recordOf(refreshCompleted, key, "given up")], { mayAct, signal: stop.signal });
    await expect(delivery).rejects.toThrow(AbandonedError);
    await heal();
    await producer.deliver([recordOf(refreshCompleted, key, "later")]);
    expect(texts((await wholeTopic(refreshCompleted)).filter((one) => one.key === key))).toEqual(["later"]);
  });

  it("asks before each try whether it may act", async () => {
    let asked = 0;
    const delivery = producer.deliver([recordOf(refreshCompleted, "asked", "value")], {
      mayAct: () => {
        asked += 1;
        return asked < 6;
      },
    });
    await expect(delivery).rejects.toThrow(AbandonedError);
    expect(asked).toBe(6);
  });

  it("is reported: retries, refusals and what waits", async () => {
    const metrics = new Metrics("test");
    const measured = await createProducer(kafka, { topics, logger, requestTimeoutMs: 3_000, metrics });
    await createProducer(kafka, { topics, logger, requestTimeoutMs: 3_000, metrics }).then((second) => second.close());
    await measured.deliver([recordOf(tokenState, "metrics", "value"), recordOf(tokenState, "metrics", "value")]);
    await measured.send(recordOf(refreshCompleted, "metrics", "value"), 3_000);
    const stop = new AbortController();
    const held = measured.deliver([recordOf(refreshCompleted, "metrics", "value")], { signal: stop.signal });
    held.catch(() => undefined);
    const topic = 'topic="public.metadata.refresh.completed.v1"';
    const retried = new RegExp(`kafka_producer_retries_total\\{${topic},cause="not_sent",service="test"\\} [1-9]`);
    const text = await waitFor(
      "a retry",
      async () => (await metrics.text()).body,
      (body) => retried.test(body),
    );
    expect(text).toContain(`kafka_producer_records_total{${topic},result="not_sent",service="test"} 1`);
    expect(text).toContain('topic="public.metadata.token.state.v1",result="acknowledged",service="test"} 2');
    expect(text).toContain('kafka_producer_waiting_records{service="test"} 1');
    stop.abort();
    await measured.close();
  });
});

describe("a connection that is dead without a word", () => {
  it.each([
    ["kafkajs gives up its requests", true],
    ["kafkajs waits for ever", false],
  ])("is left for a new one, and the record arrives there: %s", async (name, enforceRequestTimeout) => {
    const sockets: Socket[] = [];
    const watched = new kafkajs.Kafka({
      brokers: (environment.KAFKA_BROKERS ?? "").split(","),
      requestTimeout: 400,
      enforceRequestTimeout,
      logLevel: kafkajs.logLevel.NOTHING,
      socketFactory: ({ host, port, onConnect }) => {
        const socket = connect({ host, port }, onConnect);
        sockets.push(socket);
        return socket;
      },
    });
    const patient = await createProducer(watched, { topics, logger, requestTimeoutMs: 400 });
    await patient.deliver([recordOf(tokenOutcome, name, "before")]);
    // As when the broker's address has gone to another machine: nothing arrives there, and nothing comes back.
    for (const socket of sockets) socket.write = () => true;
    expect(await patient.deliver([recordOf(tokenOutcome, name, "after")])).toMatchObject([{ ok: true }]);
    await patient.close();
    for (const socket of sockets) socket.destroy();
    expect(texts((await wholeTopic(tokenOutcome)).filter(({ key }) => key === name))).toEqual(["before", "after"]);
  });
});

describe("a topic that is not there", () => {
  it("is told as not sent, and is delivered to once it is there", async () => {
    const missing = uniqueTopics();
    const early = await createProducer(kafka, { topics: missing, logger, requestTimeoutMs: 3_000 });
    expect(await early.send(recordOf(missing.tokenState, "key", "sent"), 5_000)).toMatchObject({ ok: false, reason: "not_sent" });
    const delivery = early.deliver([recordOf(missing.tokenState, "key", "delivered")]);
    await provisionTopics(patient, { topics: missing, replicationFactor: 1, dryRun: false });
    expect(await delivery).toMatchObject([{ ok: true, offset: 0 }]);
    await early.close();
    await admin.deleteTopics({ topics: missing.all.map(({ name }) => name) });
  });
});

describe("close", () => {
  it("waits for what is on its way, gives up what waits, and refuses what comes after", async () => {
    const key = "close";
    let asked = 0;
    let behind: Promise<SendResult> | undefined;
    const closing = new Promise<void>((resolve, reject) => {
      const mayAct = () => {
        asked += 1;
        // The second time it is being put on the connection: what comes now is not part of the call.
        if (asked === 2) {
          behind = producer.send(recordOf(tokenOutcome, key, "behind"), 3_000);
          setImmediate(() => producer.close().then(resolve, reject));
        }
        return true;
      };
      expect(producer.deliver([recordOf(tokenOutcome, key, "on its way")], { mayAct }))
        .resolves.toMatchObject([{ ok: true }])
        .catch(reject);
    });
    await closing;
    expect(await behind).toMatchObject({ ok: false, reason: "not_sent" });
    await expect(producer.deliver([recordOf(tokenOutcome, key, "after")])).rejects.toThrow(AbandonedError);
    expect(await producer.send(recordOf(tokenOutcome, key, "after"), 3_000)).toMatchObject({ reason: "not_sent" });
    expect(texts((await wholeTopic(tokenOutcome)).filter((one) => one.key === key))).toEqual(["on its way"]);
  });
});
