import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AbandonedError, PoisonRecordError } from "../../services/common/errors.ts";
import {
  type BatchConsumer,
  type BatchConsumerOptions,
  startBatchConsumer,
} from "../../services/common/kafka/consume/batch-consumer.ts";
import type { BatchHandler, TopicPartition } from "../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";
import { waitFor } from "../support/wait-for.ts";
import { type Corner, createCorner, jsonCodec, member } from "./kafka-consume-corner.ts";

let corner: Corner;
let groupCount = 0;
const running = new Set<BatchConsumer>();

beforeAll(async () => {
  corner = await createCorner("batch");
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

async function start(
  groupId: string,
  topic: TopicDefinition,
  handler: BatchHandler<number>,
  options: Partial<BatchConsumerOptions> = {},
) {
  const own = member(corner.deadLetters);
  const consumer = await startBatchConsumer(corner.client(), { ...own, groupId, topics: [{ topic, handler }], ...options });
  running.add(consumer);
  const stop = async (): Promise<void> => {
    running.delete(consumer);
    await consumer.stop();
  };
  return { consumer, stop, logs: own.logs, failures: own.failures, metrics: own.metrics };
}

const committedTo = (groupId: string, topic: TopicDefinition, offsets: readonly number[]) =>
  waitFor(
    `${groupId} to commit ${offsets}`,
    () => corner.committed(groupId, topic),
    (seen) => seen.join() === offsets.join(),
  );

test("consumes records that were produced before the group ever committed, and commits what the handler returned from", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  await corner.produce(topic, 0, [1, 2, 3]);
  await corner.produce(topic, 1, [4]);
  const seen: number[] = [];
  const { stop } = await start(group, topic, async (records) => void seen.push(...records.map(({ value }) => value)));
  await waitFor(
    "all records",
    () => seen.length,
    (length) => length === 4,
  );
  await committedTo(group, topic, [3, 1]);
  await stop();
  await start(group, topic, async (records) => void seen.push(...records.map(({ value }) => value)));
  await corner.produce(topic, 1, [5]);
  await waitFor(
    "the record after the restart",
    () => seen.at(-1),
    (last) => last === 5,
  );
  expect(seen.toSorted()).toEqual([1, 2, 3, 4, 5]);
});

test("gives a handler at most 1000 records at once, in order", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, range(2500));
  const slices: number[][] = [];
  await start(group, topic, async (records) => void slices.push(records.map(({ value }) => value)));
  await committedTo(group, topic, [2500]);
  expect(slices.flat()).toEqual(range(2500));
  expect(Math.max(...slices.map(({ length }) => length))).toBe(1000);
});

test("handles everything in order when it gathers, and what nothing follows as well", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  const seen: [number[], number[]] = [[], []];
  await start(
    group,
    topic,
    async (records, { partition }) => void seen[partition as 0 | 1].push(...records.map(({ value }) => value)),
    { gathers: true },
  );
  for (const round of range(10)) {
    await Promise.all([corner.produce(topic, 0, range(100, round * 100)), corner.produce(topic, 1, range(50, round * 50))]);
  }
  await committedTo(group, topic, [1_000, 500]);
  await corner.produce(topic, 1, [500]);
  await committedTo(group, topic, [1_000, 501]);
  expect(seen).toEqual([range(1_000), range(501)]);
});

test("puts what cannot be decoded into the dead letters, with its bytes, headers and origin, and goes on", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produceRaw(topic, [
    { partition: 0, key: "a", value: "1" },
    { partition: 0, key: "b", value: "?", headers: { traceparent: "00-1-2-01" } },
    { partition: 0, key: Buffer.from([0xff, 0xfe]), value: "2" },
    { partition: 0, key: null, value: "3" },
    { partition: 0, key: "c", value: null },
    { partition: 0, key: "d", value: "unknown" },
    { partition: 0, key: "e", value: "4" },
  ]);
  const seen: number[] = [];
  await start(group, topic, async (records) => void seen.push(...records.map(({ value }) => value)));
  await committedTo(group, topic, [7]);
  expect(seen).toEqual([1, 4]);
  const letters = await corner.buried(topic, 5);
  expect(letters.map(({ headers }) => [headers.dead_letter_offset, headers.dead_letter_cause])).toEqual([
    ["1", "undecodable"],
    ["2", "undecodable"],
    ["3", "undecodable"],
    ["4", "undecodable"],
    ["5", "unknown_schema"],
  ]);
  expect(letters[0]).toMatchObject({ key: Buffer.from("b"), value: Buffer.from("?") });
  expect(letters[0]?.headers).toMatchObject({
    traceparent: "00-1-2-01",
    dead_letter_partition: "0",
    dead_letter_group: corner.name,
    dead_letter_service: "test",
    dead_letter_message: "not JSON",
  });
  expect(Number(letters[0]?.headers.dead_letter_timestamp_ms)).toBeGreaterThan(1.7e12);
  expect(letters[3]).toMatchObject({ value: Buffer.alloc(0), headers: { dead_letter_value: "null" } });
});

test.each([
  { cause: "rejected", error: () => new PoisonRecordError("no such refresh") },
  { cause: "crashed", error: () => new TypeError("undefined is not a function") },
])("finds the one record that is $cause in its batch, and processes every other", async ({ cause, error }) => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, range(40));
  const seen: number[] = [];
  const { failures } = await start(group, topic, async (records) => {
    if (records.some(({ value }) => value === 13)) throw error();
    seen.push(...records.map(({ value }) => value));
  });
  await committedTo(group, topic, [40]);
  expect(seen).toEqual(range(40).filter((value) => value !== 13));
  const letters = await corner.buried(topic, 1);
  expect(letters).toHaveLength(1);
  expect(letters[0]).toMatchObject({
    value: Buffer.from("13"),
    headers: { dead_letter_cause: cause, dead_letter_message: error().message },
  });
  expect(failures).toEqual([]);
});

test("gives up no record for an error of our own that passes", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, range(3));
  let tries = 0;
  const { logs } = await start(group, topic, async () => {
    tries += 1;
    if (tries < 3) throw new RangeError("for now");
  });
  await committedTo(group, topic, [3]);
  expect(tries).toBe(3);
  expect(logs.filter(({ event }) => event === "record.dead_lettered")).toEqual([]);
});

test("stops dead-lettering, holds the partition and says so when everything suddenly is poison", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, range(10));
  const { consumer, logs, metrics } = await start(
    group,
    topic,
    async () => {
      throw new PoisonRecordError("everything");
    },
    { brakeAfter: 3 },
  );
  await waitFor("the brake", () => logs.some(({ event }) => event === "consumer.braked"), Boolean);
  await committedTo(group, topic, [3]);
  expect(consumer.health()).toContain("3 records in a row");
  expect((await metrics.text()).body).toMatch(/consumer_brake_engaged\{.*\} 1/);
  expect(logs.filter(({ event }) => event === "record.dead_lettered")).toHaveLength(3);
});

test("tries again for as long as infrastructure fails, while other partitions go on", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  await corner.produce(topic, 0, [0]);
  const seen: number[] = [];
  let down = true;
  await start(group, topic, async (records, { partition }) => {
    if (partition === 0 && down) throw new Error("no host available");
    seen.push(...records.map(({ value }) => value));
  });
  for (const value of [1, 2, 3]) {
    await corner.produce(topic, 1, [value]);
    await waitFor(
      `record ${value} of the other partition`,
      () => seen.at(-1),
      (last) => last === value,
    );
  }
  down = false;
  await committedTo(group, topic, [1, 3]);
  expect(seen.toSorted()).toEqual([0, 1, 2, 3]);
});

test("holds a partition whose schema registry cannot be reached, and loses nothing", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, [1, 2]);
  let lookups = 0;
  const codec = {
    ...jsonCodec,
    decode: <T>(name: string, value: Buffer | null) => {
      lookups += value?.toString() === "2" ? 1 : 0;
      const down = value?.toString() === "2" && lookups < 4;
      return down
        ? { ok: false as const, cause: "registry_unreachable" as const, message: "refused" }
        : jsonCodec.decode<T>(name, value);
    },
  };
  const seen: number[] = [];
  await start(group, topic, async (records) => void seen.push(...records.map(({ value }) => value)), { codec });
  await committedTo(group, topic, [2]);
  expect(seen).toEqual([1, 2]);
});

test("keeps its partition while a handler works for longer than the session time-out", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, [1]);
  const seen: boolean[] = [];
  const { logs } = await start(group, topic, async (_records, { signal, mayAct }) => {
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    seen.push(signal.aborted, mayAct());
  });
  await committedTo(group, topic, [1]);
  expect(seen).toEqual([false, true]);
  expect(logs.filter(({ event }) => event === "consumer.assigned")).toHaveLength(1);
});

test("lets no batch of an old assignment run on into a new one, and loses nothing when a member joins and leaves", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 4);
  for (const partition of range(4)) await corner.produce(topic, partition, range(5, partition * 10));
  const done: number[] = [];
  let inHandlers = 0;
  const overlaps: number[] = [];
  let blocked = true;
  const onAssigned = (_assigned: readonly TopicPartition[]): void => void overlaps.push(inHandlers);
  const handler: BatchHandler<number> = async (records, { signal }) => {
    inHandlers += 1;
    try {
      // Leaves late, as a handler does that waits for what is on its way.
      if (blocked) await waitFor("the end of the assignment", () => signal.aborted, Boolean);
      if (signal.aborted) throw new AbandonedError("left");
      done.push(...records.map(({ value }) => value));
    } finally {
      inHandlers -= 1;
    }
  };
  const first = await start(group, topic, handler, { onAssigned });
  await waitFor(
    "all partitions in handlers",
    () => inHandlers,
    (count) => count === 4,
  );
  const otherDone: number[] = [];
  const other = await start(group, topic, async (records) => void otherDone.push(...records.map(({ value }) => value)));
  await waitFor(
    "two owners",
    () => [first.consumer.assigned.length, other.consumer.assigned.length],
    (counts) => counts.join() === "2,2",
  );
  blocked = false;
  const firstPartitions = first.consumer.assigned.map(({ partition }) => partition).toSorted();
  await waitFor(
    "the other member's records",
    () => otherDone.length,
    (length) => length === 10,
  );
  await other.stop();
  await waitFor(
    "all partitions back",
    () => first.consumer.assigned.length,
    (count) => count === 4,
  );
  await committedTo(group, topic, [5, 5, 5, 5]);
  expect(overlaps.every((count) => count === 0)).toBe(true);
  expect(overlaps.length).toBeGreaterThanOrEqual(3);
  expect(firstPartitions).toHaveLength(2);
  expect([...done, ...otherDone].toSorted((a, b) => a - b)).toEqual(range(4).flatMap((partition) => range(5, partition * 10)));
});

test.each([
  { kind: "beyond_end", offset: 100, deleted: 0, seen: [0, 1, 2, 3, 4] },
  { kind: "expired", offset: 1, deleted: 3, seen: [3, 4] },
])(
  "reads from the beginning, and says so, when what is committed is $kind",
  async ({ kind, offset, deleted, seen: expected }) => {
    const group = newGroup();
    const topic = await corner.topic(corner.topics.refreshRequested, 1);
    await corner.produce(topic, 0, range(5));
    await corner.commit(group, topic, offset);
    if (deleted > 0) {
      await corner.admin.deleteTopicRecords({ topic: topic.name, partitions: [{ partition: 0, offset: String(deleted) }] });
    }
    const seen: number[] = [];
    const { metrics, logs } = await start(group, topic, async (records) => void seen.push(...records.map(({ value }) => value)));
    await committedTo(group, topic, [5]);
    expect(seen).toEqual(expected);
    expect((await metrics.text()).body).toContain(`consumer_offset_resets_total{kind="${kind}",service="test"} 1`);
    expect(logs.filter(({ event }) => event === "consumer.offset_reset")).toMatchObject([{ kind, partition: 0, level: "error" }]);
  },
);

test("notices that retention overtook it while it stood still", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 1);
  await corner.produce(topic, 0, range(5));
  const seen: number[] = [];
  let tries = 0;
  const { metrics } = await start(group, topic, async (records) => {
    tries += 1;
    if (tries === 1) {
      await corner.admin.deleteTopicRecords({ topic: topic.name, partitions: [{ partition: 0, offset: "3" }] });
      throw new Error("not now");
    }
    seen.push(...records.map(({ value }) => value));
  });
  await committedTo(group, topic, [5]);
  expect(seen).toEqual([3, 4]);
  expect((await metrics.text()).body).toContain('consumer_offset_resets_total{kind="expired",service="test"} 1');
});

test("reads a record above its partition's share of a fetch while another partition always has more", async () => {
  const group = newGroup();
  const topic = await corner.topic(corner.topics.refreshRequested, 2);
  const backlog = range(20);
  for (const value of backlog) await corner.produce(topic, 0, ["x".repeat(500_000 + value)]);
  await corner.produce(topic, 1, ["x".repeat(1_500_000)]);
  const sizes: number[] = [];
  await start(group, topic, async (records) => void sizes.push(...records.map(({ bytes }) => bytes)));
  await committedTo(group, topic, [backlog.length, 1]);
  // Not last: it did not have to wait until nothing else was left.
  expect(sizes.findIndex((bytes) => bytes > 1_500_000)).toBeLessThan(backlog.length);
});

test("hands out a record of a delay topic when it is due, never before, also after a rebalance", async () => {
  const group = newGroup();
  // Long enough for a rebalance before it is over.
  const delayMs = 10_000;
  const topic = await corner.topic(corner.topics.watchdog, 2, delayMs);
  const lateMs: number[] = [];
  const handler: BatchHandler<number> = async (records) => {
    for (const { timestampMs } of records) lateMs.push(Date.now() - timestampMs - delayMs);
  };
  const first = await start(group, topic, handler);
  await corner.produce(topic, 0, [1, 2]);
  await corner.produce(topic, 1, [3]);
  await start(group, topic, handler);
  await waitFor(
    "the rebalance",
    () => first.consumer.assigned.length,
    (count) => count === 1,
  );
  expect(lateMs).toEqual([]);
  await committedTo(group, topic, [2, 1]);
  expect(lateMs).toHaveLength(3);
  expect(Math.min(...lateMs)).toBeGreaterThanOrEqual(-1);
  // Not a second time from the rebalance on.
  expect(Math.max(...lateMs)).toBeLessThan(delayMs / 2);
});
