import { rm } from "node:fs/promises";
import type { Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { type ServerHandle, startServer } from "../../deploy/local/lifecycle.ts";
import { privateSettings } from "../../deploy/local/private.ts";
import { AbandonedError } from "../../services/common/errors.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import type { OutgoingRecord, RecordProducer, SendResult } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { provisionTopics } from "../../services/common/kafka/provision/topics.ts";
import { loadTopics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { type ReadRecord, readTopic } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";

const requestTimeoutMs = 1_500;
/** A loaded broker takes its time to create topics. */
const provisionTimeoutMs = 60_000;
const logs: string[] = [];
const logger = createLogger("test", "warn", { write: (line) => void logs.push(line) });
const topics = loadTopics();
let broker: ServerHandle;
let environment: Record<string, string>;
let kafka: Kafka;
let producer: RecordProducer;

beforeAll(async () => {
  broker = await startServer("kafka", await privateSettings("kafka-produce"));
  environment = { ...stackEnvironment(), KAFKA_BROKERS: `127.0.0.1:${broker.settings.ports.KAFKA_PORT}` };
  const connection = { brokers: [environment.KAFKA_BROKERS ?? ""], clientId: "outage-test", logger };
  kafka = createKafka({ ...connection, requestTimeoutMs });
  const patient = createKafka({ ...connection, requestTimeoutMs: provisionTimeoutMs });
  await provisionTopics(patient, { topics, replicationFactor: 1, dryRun: false });
});
afterAll(async () => {
  await broker.stop();
  await rm(broker.settings.home, { recursive: true, force: true });
});
beforeEach(async () => {
  producer = await createProducer(kafka, { topics, logger, requestTimeoutMs });
});
afterEach(async () => {
  await broker.kill("SIGCONT");
  if (!broker.isRunning()) await broker.restart();
  await producer.close();
});

let keys = 0;
/** No two tests look at each other's records. */
function newKey(): string {
  keys += 1;
  return `key-${keys}`;
}

function recordOf(key: string, value: string): OutgoingRecord {
  return { topic: topics.tokenOutcome.name, key, value: Buffer.from(value) };
}

/** Resolves when the call that carries what was submitted in this turn is being written. */
function written(): Promise<void> {
  return new Promise((resolve) => {
    let asked = 0;
    const mayAct = () => {
      asked += 1;
      // First when it is its turn, then when kafkajs has found the leader and puts it on the connection.
      if (asked === 2) setImmediate(resolve);
      return true;
    };
    producer.deliver([recordOf(newKey(), "beside it")], { mayAct }).catch(() => undefined);
  });
}

/** What the log holds once everything before is in it. */
async function readAll(): Promise<readonly ReadRecord<Buffer>[]> {
  const last = await producer.deliver(Array.from({ length: 40 }, (_, index) => recordOf(`last-${index}`, "last")));
  const reader = await readTopic<Buffer>(environment, topics.tokenOutcome.name);
  const there = (records: readonly ReadRecord<Buffer>[]) =>
    last.every((one) => one.ok && records.some(({ partition, offset }) => partition === one.partition && offset === one.offset));
  try {
    return await reader.until("the last records", there);
  } finally {
    await reader.close();
  }
}

function textsOf(records: readonly ReadRecord<Buffer>[], key: string): string[] {
  return records.filter((record) => record.key === key).map(({ bytes }) => bytes.toString());
}

it("loses no record, and no order, when the broker is killed under load and comes back", async () => {
  const prefix = newKey();
  const acknowledged: { key: string; value: string; result: Extract<SendResult, { ok: true }> }[] = [];
  let stop = false;
  const submit = async (worker: number) => {
    for (let index = 0; !stop; index += 1) {
      const [key, value] = [`${prefix}-${worker}`, String(index)];
      const [result] = await producer.deliver([recordOf(key, value)]);
      if (result?.ok) acknowledged.push({ key, value, result });
    }
  };
  const workers = Array.from({ length: 50 }, (_, worker) => submit(worker));
  await waitFor(
    "some load",
    () => acknowledged.length,
    (count) => count > 2_000,
  );
  await broker.kill("SIGKILL");
  const before = acknowledged.length;
  await broker.restart();
  await waitFor(
    "an acknowledgement after the outage",
    () => acknowledged.length,
    (count) => count > before,
    { everyMs: 5 },
  );
  stop = true;
  await Promise.all(workers);
  const read = await readAll();
  const byPlace = new Map(read.map((record) => [`${record.partition}/${record.offset}`, record]));
  for (const { key, value, result } of acknowledged) {
    const found = byPlace.get(`${result.partition}/${result.offset}`);
    if (found?.key !== key || found.bytes.toString() !== value) throw new Error(`lost: ${value} of ${key}`);
  }
  for (let worker = 0; worker < 50; worker += 1) {
    const numbers = textsOf(read, `${prefix}-${worker}`).map(Number);
    // A record that was sent and not answered goes again: it may stand twice, but never after a later one.
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  }
});

it("tells a record that is on its way from one that waits behind it when the broker hangs: unknown, and not sent", async () => {
  const key = newKey();
  await producer.deliver([recordOf(key, "before")]);
  await broker.kill("SIGSTOP");
  const onItsWay = producer.send(recordOf(key, "on its way"), 600);
  await written();
  const behind = producer.send(recordOf(key, "behind"), 300);
  expect(await behind).toMatchObject({ ok: false, reason: "not_sent" });
  expect(await onItsWay).toMatchObject({ ok: false, reason: "unknown" });
  const delivery = producer.deliver([recordOf(key, "delivered")]);
  await broker.kill("SIGCONT");
  expect(await delivery).toMatchObject([{ ok: true }]);
  expect(textsOf(await readAll(), key)).toEqual(["before", "on its way", "delivered"]);
});

it("goes on when a broker that has hung for long answers again", async () => {
  const key = newKey();
  await broker.kill("SIGSTOP");
  logs.length = 0;
  const delivery = producer.deliver([recordOf(key, "delivered")]);
  const late = () => logs.filter((line) => line.includes("produce.failed") && line.includes("timed out"));
  await waitFor("two late calls", late, (lines) => lines.length >= 2);
  await broker.kill("SIGCONT");
  expect(await delivery).toMatchObject([{ ok: true }]);
  expect(new Set(textsOf(await readAll(), key))).toEqual(new Set(["delivered"]));
});

it("tells a record that was on its way when the broker died as unknown, whatever kafkajs says of the reconnection", async () => {
  const key = newKey();
  await producer.deliver([recordOf(key, "before")]);
  await broker.kill("SIGSTOP");
  const onItsWay = producer.send(recordOf(key, "on its way"), 10_000);
  await written();
  await broker.kill("SIGKILL");
  expect(await onItsWay).toMatchObject({ ok: false, reason: "unknown" });
  await broker.restart();
});

it("sends nothing later of what it told as not sent, or gave up, while the broker was away", async () => {
  const key = newKey();
  await producer.deliver([recordOf(key, "before")]);
  await broker.kill("SIGKILL");
  const mayAct = { now: true };
  const givenUp = producer.deliver([recordOf(key, "given up")], { mayAct: () => mayAct.now });
  givenUp.catch(() => undefined);
  const results = await Promise.all(["1", "2", "3"].map((value) => producer.send(recordOf(key, value), 2_500)));
  expect(results).toMatchObject(results.map(() => ({ ok: false, reason: "not_sent" })));
  mayAct.now = false;
  await expect(givenUp).rejects.toThrow(AbandonedError);
  const delivery = producer.deliver([recordOf(key, "delivered")]);
  await broker.restart();
  expect(await delivery).toMatchObject([{ ok: true }]);
  expect(textsOf(await readAll(), key)).toEqual(["before", "delivered"]);
});

it("closes without waiting for a broker when nothing is on its way, though no broker can be reached", async () => {
  await broker.kill("SIGKILL");
  const waiting = producer.deliver([recordOf(newKey(), "given up")]);
  // Far longer than a test may take.
  const sent = producer.send(recordOf(newKey(), "refused"), 3_600_000);
  logs.length = 0;
  await waitFor(
    "a failed call",
    () => logs,
    (lines) => lines.some((line) => line.includes("produce.failed")),
  );
  await Promise.all([producer.close(), expect(waiting).rejects.toThrow(AbandonedError)]);
  expect(await sent).toMatchObject({ ok: false, reason: "not_sent" });
});
