import { setImmediate as nextTurn } from "node:timers/promises";
import type { Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import {
  startWindowConsumer,
  type WindowConsumer,
  type WindowConsumerOptions,
} from "../../services/common/kafka/consume/window-consumer.ts";
import type { DecodedRecord, TopicPartition } from "../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";
import { BrokerClock } from "../../services/common/retry/broker-clock.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Corner, createCorner, member } from "./kafka-consume-corner.ts";
import { cuttableClient } from "./kafka-consume-cuttable.ts";

/** What a member has in its hands while its group is between two assignments, or while it is out of its group. */
let corner: Corner;
let groupCount = 0;
const running = new Set<WindowConsumer>();

beforeAll(async () => {
  corner = await createCorner("membership");
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

type Options = Partial<WindowConsumerOptions<number>> & { readonly kafka?: Kafka };

async function start(groupId: string, main: TopicDefinition, { kafka = corner.client(), ...options }: Options = {}) {
  const own = member(corner.deadLetters);
  const records: DecodedRecord<number>[] = [];
  const lost: TopicPartition[] = [];
  const consumer = await startWindowConsumer<number>(kafka, {
    ...own,
    groupId,
    main,
    tiers: [],
    brokerClock: new BrokerClock(),
    commitIntervalMs: 100,
    onRecords: (some) => void records.push(...some),
    onLost: (partitions) => void lost.push(...partitions),
    ...options,
  });
  running.add(consumer);
  return { consumer, records, lost, logs: own.logs, values: () => records.map(({ value }) => value) };
}

const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index);
const has = (what: string, records: readonly unknown[], count: number) =>
  waitFor(
    what,
    () => records.length,
    (length) => length === count,
  );
const owns = (what: string, consumer: WindowConsumer, count: number) =>
  waitFor(
    what,
    () => consumer.assigned.length,
    (length) => length === count,
  );

test("fetches again when its window had room again while the group was between two assignments", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 2);
  for (const partition of range(2)) await corner.produce(main, partition, [partition]);
  const first = await start(group, main, { budget: { records: 2, bytes: 1_000_000 } });
  await has("a full window", first.records, 2);
  const joining = start(group, main);
  while (first.consumer.assigned.length > 0) await nextTurn();
  for (const record of first.records) first.consumer.finish(record);
  const second = await joining;
  await owns("two owners", second.consumer, 1);
  for (const partition of range(2)) await corner.produce(main, partition, [10 + partition]);
  await waitFor(
    "the new records",
    () => [...first.values(), ...second.values()].filter((value) => value >= 10).toSorted(),
    (seen) => seen.join() === "10,11",
  );
});

test("commits what it finishes after an outage that kafkajs gave up in, although nothing new comes", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produce(main, 0, [1, 2, 3]);
  const client = cuttableClient(corner.name);
  const { consumer, records, logs } = await start(group, main, { kafka: client.kafka });
  await has("the records", records, 3);
  client.cut("everything");
  await waitFor("kafkajs to give up", () => logs.some(({ event }) => event === "consumer.crashed"), Boolean);
  client.cut("nothing");
  await owns("the assignment again", consumer, 1);
  for (const record of records) consumer.finish(record);
  await waitFor(
    "the commit",
    () => corner.committed(group, main),
    ([offset]) => offset === 3,
  );
  expect(records).toHaveLength(3);
});

test("gives up what another member has finished while it was out of its group, and reads on behind it", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produce(main, 0, range(6));
  const client = cuttableClient(corner.name);
  const first = await start(group, main, { kafka: client.kafka });
  await has("the records", first.records, 6);
  client.cut("everything");
  const second = await start(group, main);
  await has("the records with the other member", second.records, 6);
  for (const record of second.records.slice(0, 4)) second.consumer.finish(record);
  await waitFor(
    "the other's commit",
    () => corner.committed(group, main),
    ([offset]) => offset === 4,
  );
  running.delete(second.consumer);
  await second.consumer.stop();
  client.cut("nothing");
  await has("what nobody has finished", first.records, 8);
  expect(first.lost).toEqual([{ topic: main.name, partition: 0 }]);
  expect(first.values()).toEqual([0, 1, 2, 3, 4, 5, 4, 5]);
  for (const record of first.records) first.consumer.finish(record);
  await waitFor(
    "the last commit",
    () => corner.committed(group, main),
    ([offset]) => offset === 6,
  );
});
