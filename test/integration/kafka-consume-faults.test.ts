import type { Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type BatchConsumerOptions, startBatchConsumer } from "../../services/common/kafka/consume/batch-consumer.ts";
import { createGroupLag } from "../../services/common/kafka/consume/group-lag.ts";
import { startWindowConsumer } from "../../services/common/kafka/consume/window-consumer.ts";
import type { BatchHandler, DecodedRecord } from "../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";
import { BrokerClock } from "../../services/common/retry/broker-clock.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Corner, createCorner, member } from "./kafka-consume-corner.ts";
import { cuttableClient } from "./kafka-consume-cuttable.ts";

let corner: Corner;
let groupCount = 0;
const running = new Set<{ stop(): Promise<void> }>();

beforeAll(async () => {
  corner = await createCorner("faults");
});

afterEach(async () => {
  await Promise.all([...running].map((consumer) => consumer.stop()));
  running.clear();
});

afterAll(() => corner?.close());

function newGroup(): string {
  groupCount += 1;
  return `${corner.name}-${groupCount}`;
}

async function start(
  groupId: string,
  topic: TopicDefinition,
  options: Partial<BatchConsumerOptions> & { handler?: BatchHandler<number>; kafka?: Kafka } = {},
) {
  const { handler, kafka = corner.client(), ...rest } = options;
  const own = member(corner.deadLetters);
  const seen: number[] = [];
  const keep: BatchHandler<number> = async (records) => void seen.push(...records.map(({ value }) => value));
  const topics = [{ topic, handler: handler ?? keep }];
  const consumer = await startBatchConsumer(kafka, { ...own, groupId, topics, ...rest });
  running.add(consumer);
  const unread = async () => Number(/^consumer_unread_records\S* (\d+)$/m.exec((await own.metrics.text()).body)?.[1]);
  return { consumer, seen, logs: own.logs, failures: own.failures, unread };
}

const committedTo = (groupId: string, topic: TopicDefinition, offset: number) =>
  waitFor(
    `${groupId} to commit ${offset}`,
    () => corner.committed(groupId, topic),
    ([seen]) => seen === offset,
  );

test("goes on by itself when no broker could be reached for longer than kafkajs tries", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, [1]);
  const client = cuttableClient(corner.name);
  const { consumer, seen, logs, failures, unread } = await start(group, topic, { kafka: client.kafka });
  await waitFor(
    "the record",
    () => seen.length,
    (count) => count === 1,
  );
  // Cut off before its commit is answered, the batch goes on trying, and kafkajs has nothing to give up.
  await waitFor("the answer to its commit", unread, (count) => count === 0);
  client.cut("everything");
  await waitFor("kafkajs to give up", () => logs.some(({ event }) => event === "consumer.crashed"), Boolean);
  expect(consumer.health()).toBeDefined();
  await corner.produce(topic, 0, [2]);
  client.cut("nothing");
  await committedTo(group, topic, 2);
  expect(seen).toEqual([1, 2]);
  expect(failures).toEqual([]);
});

test.each([
  ["no broker could be reached", "everything"],
  ["its connections had become dead ones", "answers"],
  ["the coordinator that it knew was gone for good", "known coordinator"],
] as const)("goes on by itself when %s for longer than a session while a batch was not committed", async (_, what) => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  const client = cuttableClient(corner.name);
  const seen: number[] = [];
  const handler: BatchHandler<number> = async (records) => {
    if (seen.length === 0) client.cut(what);
    seen.push(...records.map(({ value }) => value));
  };
  const { logs, failures } = await start(group, topic, { kafka: client.kafka, handler });
  await corner.produce(topic, 0, [1]);
  await waitFor("the end of the session", () => logs.some(({ event }) => event === "consumer.session_lapsed"), Boolean);
  if (what === "everything") client.cut("nothing");
  await corner.produce(topic, 0, [2]);
  await committedTo(group, topic, 2);
  expect(new Set(seen)).toEqual(new Set([1, 2]));
  expect(failures).toEqual([]);
});

test("goes on by itself when kafkajs takes a coordinator that is away for final", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  const client = cuttableClient(corner.name);
  const { seen, logs, failures } = await start(group, topic, { kafka: client.kafka });
  client.cut("coordinator");
  const other = await start(group, topic);
  await waitFor(
    "the end",
    () => logs.filter(({ event, restarts }) => event === "consumer.crashed" && restarts === false),
    ({ length }) => length > 1,
  );
  client.cut("nothing");
  await waitFor(
    "two owners",
    () => other.consumer.assigned.length,
    (count) => count === 1,
  );
  await corner.produce(topic, 0, [1]);
  await corner.produce(topic, 1, [2]);
  await waitFor(
    "both records",
    () => [...seen, ...other.seen].toSorted(),
    ({ length }) => length === 2,
  );
  expect(failures).toEqual([]);
});

test("a member that is cut off may not act any more when another has its partitions, and nothing is lost", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 2);
  await corner.produce(main, 0, [1]);
  const client = cuttableClient(corner.name);
  const startOne = async (kafka: Kafka) => {
    const records: DecodedRecord<number>[] = [];
    const consumer = await startWindowConsumer<number>(kafka, {
      ...member(corner.deadLetters),
      groupId: group,
      main,
      tiers: [],
      brokerClock: new BrokerClock(),
      commitIntervalMs: 100,
      onRecords: (some) => void records.push(...some),
      onLost: () => undefined,
    });
    running.add(consumer);
    return { consumer, records };
  };
  const first = await startOne(client.kafka);
  await waitFor(
    "the record",
    () => first.records.length,
    (count) => count === 1,
  );
  client.cut("everything");
  const second = await startOne(corner.client());
  let actedTogether = false;
  const both = () => {
    const seen = [first, second].map(({ consumer }) => consumer.mayAct({ topic: main.name, partition: 0 }));
    actedTogether ||= seen.every(Boolean);
    return seen;
  };
  await waitFor("the other's right to act", both, ([, mayAct]) => mayAct === true, { everyMs: 5 });
  await waitFor(
    "the record, again",
    () => second.records.length,
    (count) => count === 1,
  );
  client.cut("nothing");
  await waitFor(
    "two owners",
    () => both() && first.consumer.assigned.length,
    (count) => count === 1,
    { everyMs: 5 },
  );
  for (const { consumer, records } of [first, second]) for (const record of records) consumer.finish(record);
  await committedTo(group, main, 1);
  expect(actedTogether).toBe(false);
});

test("ends the process when kafkajs ends for good", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  const foreign = corner.client().consumer({ groupId: group, maxWaitTimeInMs: 100 });
  await foreign.connect();
  await foreign.subscribe({ topic: topic.name });
  await foreign.run({ eachBatch: async () => undefined });
  try {
    // Another way to assign partitions than everybody else's.
    const { failures } = await start(group, topic);
    await waitFor(
      "the failure",
      () => failures,
      ({ length }) => length > 0,
    );
    expect(String(failures[0])).toContain("protocol");
  } finally {
    await foreign.disconnect();
  }
});

test("reads a topic that was created anew from its beginning, and says that the log is another one", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, [1, 2, 3]);
  const first = await start(group, topic);
  await committedTo(group, topic, 3);
  await first.consumer.stop();
  await corner.recreate(topic);
  // Deleting a topic deletes what is committed for it; a restored group has it still.
  await corner.commit(group, topic, 3);
  await corner.produce(topic, 0, [4]);
  const second = await start(group, topic);
  await committedTo(group, topic, 1);
  expect(second.seen).toEqual([4]);
  expect(second.logs.filter(({ event }) => event === "consumer.offset_reset")).toMatchObject([{ kind: "beyond_end" }]);
});

test("the lag of a group counts what is not committed, from the beginning where nothing is", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  await corner.produce(topic, 0, [1, 2, 3]);
  await corner.produce(topic, 1, [4]);
  await corner.admin.deleteTopicRecords({ topic: topic.name, partitions: [{ partition: 0, offset: "1" }] });
  const groupLag = createGroupLag(corner.client());
  const both = [0, 1].map((partition) => ({ topic: topic.name, partition }));
  expect(await groupLag.lag(group, both)).toBe(3);
  await corner.commit(group, topic, 2);
  expect(await groupLag.lag(group, both)).toBe(2);
  expect(await groupLag.lag(group, both.slice(0, 1))).toBe(1);
  await expect(groupLag.lag(group, [{ topic: topic.name, partition: 2 }])).rejects.toThrow("does not exist");
  await groupLag.close();
});
