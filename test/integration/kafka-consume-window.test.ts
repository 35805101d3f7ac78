import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import {
  startWindowConsumer,
  type WindowConsumer,
  type WindowConsumerOptions,
} from "../../services/common/kafka/consume/window-consumer.ts";
import type { DecodedRecord, TopicPartition } from "../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";
import { BrokerClock } from "../../services/common/retry/broker-clock.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Corner, createCorner, member, timing } from "./kafka-consume-corner.ts";

let corner: Corner;
let groupCount = 0;
const running = new Set<WindowConsumer>();

beforeAll(async () => {
  corner = await createCorner("window");
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

const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, index) => from + index);
const at = (topic: TopicDefinition, partition = 0): TopicPartition => ({ topic: topic.name, partition });

interface Topics {
  readonly main: TopicDefinition;
  readonly tiers?: readonly TopicDefinition[];
}

/** Records are kept until the test finishes them. */
async function start(groupId: string, { main, tiers = [] }: Topics, options: Partial<WindowConsumerOptions<number>> = {}) {
  const own = member(corner.deadLetters);
  const records: DecodedRecord<number>[] = [];
  const lost: TopicPartition[] = [];
  const consumer = await startWindowConsumer<number>(corner.client(), {
    ...own,
    groupId,
    main,
    tiers,
    brokerClock: new BrokerClock(),
    commitIntervalMs: 100,
    onRecords: (some) => void records.push(...some),
    onLost: (partitions) => void lost.push(...partitions),
    ...options,
  });
  running.add(consumer);
  const values = (): number[] => records.map(({ value }) => value);
  return {
    consumer,
    records,
    lost,
    logs: own.logs,
    failures: own.failures,
    metrics: own.metrics,
    values,
    handedOut: (count: number) =>
      waitFor(
        `${count} records`,
        () => records.length,
        (length) => length >= count,
      ),
    finish: (...which: readonly number[]) => {
      for (const record of records) if (which.includes(record.value)) consumer.finish(record);
    },
    stop: async () => {
      running.delete(consumer);
      await consumer.stop();
    },
  };
}

const committedTo = (groupId: string, topic: TopicDefinition, offsets: readonly number[]) =>
  waitFor(
    `${groupId} to commit ${offsets}`,
    () => corner.committed(groupId, topic),
    (seen) => seen.join() === offsets.join(),
  );

test("commits nothing past an unfinished record, whatever finishes first, and the rest at its stop", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produce(main, 0, range(5));
  const { handedOut, finish, stop } = await start(group, { main });
  await handedOut(5);
  finish(1, 2, 4);
  await corner.produce(main, 0, [5]);
  await handedOut(6);
  finish(5);
  finish(0);
  await committedTo(group, main, [3]);
  finish(3);
  await stop();
  expect(await corner.committed(group, main)).toEqual([6]);
});

test("hands out again, after its stop, exactly what was not finished", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produce(main, 0, range(4));
  const first = await start(group, { main });
  await first.handedOut(4);
  first.finish(0, 1);
  await first.stop();
  first.finish(2);
  const second = await start(group, { main });
  await second.handedOut(2);
  await corner.produce(main, 0, [4]);
  await second.handedOut(3);
  expect(second.values()).toEqual([2, 3, 4]);
});

test("keeps its group while everything is paused for longer than the session and the wall clock is set back", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produce(main, 0, [0]);
  const { consumer, handedOut, finish, logs } = await start(group, { main }, { budget: { records: 1, bytes: 1_000_000 } });
  await handedOut(1);
  const clock = vi
    .spyOn(Date, "now")
    .mockImplementation(() => Math.round(performance.timeOrigin + performance.now()) - 3_600_000);
  try {
    const since = performance.now();
    await corner.produce(main, 0, [1]);
    await waitFor(
      "the session to pass",
      () => performance.now() - since,
      (ms) => ms > timing.sessionTimeoutMs + 1_000,
    );
    expect(consumer.mayAct(at(main))).toBe(true);
    finish(0);
    await handedOut(2);
    finish(1);
    await committedTo(group, main, [2]);
    expect(logs.filter(({ event }) => event === "consumer.assigned")).toHaveLength(1);
  } finally {
    clock.mockRestore();
  }
});

test("takes no more than its budget, and goes on as records finish", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 2);
  for (const first of range(10)) await corner.produce(main, first % 2, range(10, first * 10));
  const budget = { records: 20, bytes: 1_000_000 };
  const { consumer, records, handedOut, finish, metrics } = await start(group, { main }, { budget });
  await handedOut(20);
  expect(consumer.full).toBe(true);
  for (const done of range(80)) {
    finish(done);
    await handedOut(Math.min(100, done));
  }
  await handedOut(100);
  finish(...range(100));
  await committedTo(group, main, [50, 50]);
  expect(records.map(({ value }) => value).toSorted((a, b) => a - b)).toEqual(range(100));
  expect(consumer.full).toBe(false);
  expect((await metrics.text()).body).toContain('window_records{service="test"} 0');
});

test("a caller's pause and the budget's do not undo each other", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 2);
  await corner.produce(main, 0, [0]);
  const budget = { records: 1, bytes: 1_000_000 };
  const { consumer, values, handedOut, finish } = await start(group, { main }, { budget });
  await handedOut(1);
  consumer.pause(at(main, 0));
  await corner.produce(main, 0, [1]);
  finish(0);
  await corner.produce(main, 1, [2]);
  await handedOut(2);
  expect(values()).toEqual([0, 2]);
  consumer.resume(at(main, 0));
  finish(2);
  await handedOut(3);
  expect(values()).toEqual([0, 2, 1]);
});

test("loses nothing when a member joins and leaves, reads kept partitions on, and resumes those that were paused", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 4);
  for (const partition of range(4)) await corner.produce(main, partition, range(5, partition * 10));
  const first = await start(group, { main }, { budget: { records: 20, bytes: 1_000_000 } });
  await first.handedOut(20);
  first.finish(0, 1, 10, 20, 30);
  const second = await start(group, { main });
  await waitFor(
    "two owners",
    () => [first.consumer.assigned.length, second.consumer.assigned.length],
    (counts) => counts.join() === "2,2",
  );
  await waitFor(
    "what the first lost",
    () => first.lost.length,
    (length) => length === 2,
  );
  const keptPartitions = first.consumer.assigned.map(({ partition }) => partition);
  const kept = first.records.filter(({ partition }) => keptPartitions.includes(partition)).map(({ value }) => value);
  const moved = range(4).filter((partition) => !keptPartitions.includes(partition));
  // What was finished before the rebalance was committed before it: the other member does not see it.
  const toSee = moved.flatMap((partition) => range(5, partition * 10)).filter((value) => ![0, 1, 10, 20, 30].includes(value));
  await second.handedOut(toSee.length);
  expect(second.values().toSorted((a, b) => a - b)).toEqual(toSee);
  first.finish(...range(40));
  expect(first.consumer.owned(at(main, moved[0]))).toBe(false);
  second.finish(...second.values());
  await second.stop();
  await waitFor(
    "all partitions back",
    () => first.consumer.assigned.length,
    (count) => count === 4,
  );
  for (const partition of range(4)) await corner.produce(main, partition, [100 + partition]);
  await first.handedOut(24);
  first.finish(...range(4, 100));
  await committedTo(group, main, [6, 6, 6, 6]);
  const again = first.values().slice(20);
  expect(again.toSorted()).toEqual(range(4, 100));
  expect(kept.every((value) => !again.includes(value))).toBe(true);
});

test("acts on nothing once its last heartbeat is too old, before any answer tells it so", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  let shiftMs = 0;
  const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() + shiftMs };
  const { consumer } = await start(group, { main }, { clock });
  await waitFor(
    "the assignment",
    () => consumer.health(),
    (problem) => problem === undefined,
  );
  expect(consumer.mayAct(at(main))).toBe(true);
  // What a process sees that was stopped for so long.
  shiftMs = timing.sessionTimeoutMs - timing.requestTimeoutMs;
  expect(consumer.mayAct(at(main))).toBe(false);
  expect(consumer.owned(at(main))).toBe(true);
  expect(consumer.health()).toContain("no heartbeat");
  await waitFor("the next heartbeat", () => consumer.mayAct(at(main)), Boolean);
  expect(consumer.mayAct({ topic: main.name, partition: 1 })).toBe(false);
});

test("puts what cannot be decoded into the dead letters before its offset counts as finished, in tiers too", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  const [shortest] = corner.topics.retryTiers;
  if (shortest === undefined) throw new Error("no tier");
  const tier = await corner.topic(shortest, 1, 600_000);
  let release = (): void => undefined;
  const acknowledged = new Promise<void>((resolve) => {
    release = resolve;
  });
  const deadLetters = {
    put: async (...letter: Parameters<typeof corner.deadLetters.put>) => {
      await acknowledged;
      await corner.deadLetters.put(...letter);
    },
  };
  const { handedOut, finish } = await start(group, { main, tiers: [tier] }, { deadLetters });
  await corner.produceRaw(main, [
    { partition: 0, key: "a", value: "1" },
    { partition: 0, key: "b", value: "?" },
    { partition: 0, key: "c", value: "2" },
  ]);
  await corner.produceRaw(tier, [{ partition: 0, key: "d", value: "unknown" }]);
  await handedOut(2);
  finish(1, 2);
  await committedTo(group, main, [1]);
  release();
  await committedTo(group, main, [3]);
  await committedTo(group, tier, [1]);
  expect(await corner.buried(main, 1)).toMatchObject([{ value: Buffer.from("?"), headers: { dead_letter_offset: "1" } }]);
  expect(await corner.buried(tier, 1)).toMatchObject([{ headers: { dead_letter_cause: "unknown_schema" } }]);
});

test("holds a partition where everything is poison instead of emptying it into the dead letters", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.produceRaw(
    main,
    range(10).map(() => ({ partition: 0, key: "k", value: "?" })),
  );
  const { consumer, logs } = await start(group, { main }, { brakeAfter: 3 });
  await waitFor("the brake", () => logs.some(({ event }) => event === "consumer.partition_held"), Boolean);
  await committedTo(group, main, [3]);
  expect(consumer.health()).toContain("3 records in a row");
  expect(logs.filter(({ event }) => event === "record.dead_lettered")).toHaveLength(3);
});

test("hands out a tier's record when it is due, never before, also after a rebalance, and a long tier stops nothing", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 2);
  const [shorter, longer] = corner.topics.retryTiers;
  if (shorter === undefined || longer === undefined) throw new Error("no tiers");
  // Long enough for a rebalance before it is over.
  const delayMs = 10_000;
  const tier = await corner.topic(shorter, 2, delayMs);
  const full = await corner.topic(longer, 2, 600_000);
  for (const partition of range(2)) await corner.produce(full, partition, range(3_000, 10_000));
  const latenesses: number[] = [];
  const onRecords = (consumer: DecodedRecord<number>[]) => (records: readonly DecodedRecord<number>[]) => {
    consumer.push(...records);
    const due = records.filter(({ topic }) => topic === tier.name);
    latenesses.push(...due.map(({ timestampMs }) => Date.now() - timestampMs - delayMs));
  };
  const budget = { records: 100, bytes: 1_000_000 };
  const [seen, others]: [DecodedRecord<number>[], DecodedRecord<number>[]] = [[], []];
  const first = await start(group, { main, tiers: [tier, full] }, { onRecords: onRecords(seen), budget });
  await corner.produce(tier, 0, range(10));
  await corner.produce(tier, 1, range(10, 10));
  const second = await start(group, { main, tiers: [tier, full] }, { onRecords: onRecords(others), budget });
  await waitFor(
    "two owners",
    () => [first.consumer.assigned.length, second.consumer.assigned.length],
    (counts) => counts.join() === "3,3",
  );
  for (const { topic, partition } of first.consumer.assigned) expect(first.consumer.owned({ topic, partition })).toBe(true);
  const numbers = new Set(first.consumer.assigned.map(({ partition }) => partition));
  expect(numbers.size).toBe(1);
  for (const partition of range(2)) await corner.produce(main, partition, range(20, 100 + 20 * partition));
  await waitFor(
    "everything that is due",
    () => new Set([...seen, ...others].map(({ value }) => value)).size,
    (size) => size === 60,
  );
  expect(latenesses.length).toBeGreaterThanOrEqual(20);
  expect(Math.min(...latenesses)).toBeGreaterThanOrEqual(-1);
  // Not a second time from the rebalance on.
  expect(Math.max(...latenesses)).toBeLessThan(delayMs / 2);
  expect([...seen, ...others].some(({ topic }) => topic === full.name)).toBe(false);
});

test("says how far a mark lags behind", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  const [shortest] = corner.topics.retryTiers;
  if (shortest === undefined) throw new Error("no tier");
  const tier = await corner.topic(shortest, 1, 600_000);
  // Too large for one fetch to bring two of them.
  const headers = { padding: "x".repeat(400_000) };
  for (const value of range(3)) await corner.produceRaw(tier, [{ partition: 0, key: "k", value: `${value}`, headers }]);
  await corner.produce(main, 0, range(4));
  const { handedOut, finish, metrics } = await start(group, { main, tiers: [tier] });
  await handedOut(4);
  finish(2);
  const held = async () => (await metrics.text()).body;
  const gapOf = ({ baseName }: TopicDefinition, gap: number) => `offset_watermark_gap{topic="${baseName}",service="test"} ${gap}`;
  const body = await waitFor("the first of the tier's records to be held", held, (text) => text.includes(gapOf(tier, 1)));
  expect(body).toContain(gapOf(main, 4));
  finish(0, 1, 3);
});

test("reads a tier on as its held records are released", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  const [shortest] = corner.topics.retryTiers;
  if (shortest === undefined) throw new Error("no tier");
  const tier = await corner.topic(shortest, 1, 300);
  const { values, handedOut, consumer, records } = await start(group, { main, tiers: [tier] });
  for (const value of range(5)) await corner.produce(tier, 0, range(400, value * 400));
  await handedOut(2_000);
  expect(values()).toEqual(range(2_000));
  for (const record of records) consumer.finish(record);
  await committedTo(group, tier, [2_000]);
});

test("commits past what holds no record for it: the markers of transactions", async () => {
  const group = newGroup();
  const main = await corner.topic(corner.topics.tokenRequested, 1);
  await corner.transaction(main, ["1"], "commit");
  await corner.transaction(main, ["2"], "abort");
  await corner.transaction(main, ["3"], "abort");
  const { handedOut, finish, values } = await start(group, { main });
  await handedOut(1);
  finish(1);
  await committedTo(group, main, [6]);
  await corner.produce(main, 0, [4]);
  await handedOut(2);
  finish(4);
  await committedTo(group, main, [7]);
  expect(values()).toEqual([1, 4]);
});
