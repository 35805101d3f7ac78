import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Part, ProduceQueue, type Queued } from "../../../../../services/common/kafka/produce/queue.ts";

interface TestRecord extends Queued {
  readonly id: number;
}

let nextId = 0;
function record(partition: number, bytes = 10): TestRecord {
  nextId += 1;
  return { id: nextId, topic: "topic", partition, bytes, waiting: false, done: false };
}

function queueOf(records: readonly TestRecord[], limits: Partial<ConstructorParameters<typeof ProduceQueue>[0]> = {}) {
  const queue = new ProduceQueue<TestRecord>({ recordCount: 100, bytes: 10_000, partitionBytes: 1_000, ...limits });
  for (const one of records) queue.add(one);
  return queue;
}

function ids(parts: readonly Part<TestRecord>[]): number[][] {
  return parts.map(({ records }) => records.map(({ id }) => id));
}

describe("a call", () => {
  it("takes what waits, in order, one part for each partition", () => {
    const [a, b, c] = [record(0), record(1), record(0)];
    const queue = queueOf([a, b, c]);
    expect(queue.take(0)).toEqual([
      { topic: "topic", partition: 0, records: [a, c] },
      { topic: "topic", partition: 1, records: [b] },
    ]);
    expect(queue.take(0)).toEqual([]);
  });

  it("is cut by count, by bytes and by the bytes of one partition", () => {
    const records = Array.from({ length: 30 }, (_, index) => record(index % 3));
    expect(
      queueOf(records, { recordCount: 7 })
        .take(0)
        .map(({ records: { length } }) => length),
    ).toEqual([7]);
    expect(
      queueOf(records, { bytes: 120 })
        .take(0)
        .map(({ records: { length } }) => length),
    ).toEqual([10, 2]);
    expect(
      queueOf(records, { partitionBytes: 35 })
        .take(0)
        .map(({ records: { length } }) => length),
    ).toEqual([3, 3, 3]);
  });

  it("takes a record above every limit of bytes alone, and not never", () => {
    const [big, after] = [record(0, 5_000), record(0)];
    const queue = queueOf([big, after], { bytes: 100, partitionBytes: 50 });
    expect(ids(queue.take(0))).toEqual([[big.id]]);
    expect(ids(queue.take(0))).toEqual([[after.id]]);
  });

  it("begins with the partition that was served longest ago: a full partition does not starve the others", () => {
    const queue = queueOf([...Array.from({ length: 50 }, () => record(0)), record(1)], { recordCount: 10 });
    const served = Array.from({ length: 2 }, () => queue.take(0).map(({ partition }) => partition));
    expect(served.flat()).toContain(1);
  });
});

describe("a partition that failed", () => {
  it("rests with everything behind it, and then goes on in the old order", () => {
    const [a, b] = [record(0), record(0)];
    const queue = queueOf([a]);
    const [part] = queue.take(0);
    queue.add(b);
    if (part !== undefined) queue.putBackToRest(part, 0, 1);
    expect(queue.take(49)).toEqual([]);
    expect(queue.nextMs()).toBe(50);
    expect(ids(queue.take(50))).toEqual([[a.id, b.id]]);
  });

  it("does not keep another one from going on", () => {
    const queue = queueOf([record(0)]);
    const [part] = queue.take(0);
    if (part !== undefined) queue.putBackToRest(part, 0, 1);
    const other = record(1);
    queue.add(other);
    expect(ids(queue.take(0))).toEqual([[other.id]]);
  });

  it("rests twice as long after each failure, to one second, and begins anew after a success", () => {
    const queue = queueOf([record(0)]);
    const rests: number[] = [];
    let nowMs = 0;
    const fail = () => {
      const [part] = queue.take(nowMs);
      if (part !== undefined) queue.putBackToRest(part, nowMs, 1);
      rests.push((queue.nextMs() ?? 0) - nowMs);
      nowMs = queue.nextMs() ?? 0;
    };
    for (let failure = 0; failure < 7; failure += 1) fail();
    expect(rests).toEqual([50, 100, 200, 400, 800, 1_000, 1_000]);
    const [part] = queue.take(nowMs);
    if (part !== undefined) queue.taken(part);
    queue.add(record(0));
    fail();
    expect(rests.at(-1)).toBe(50);
  });

  it("spreads the rests of several producers", () => {
    const queue = queueOf([record(0)]);
    const [part] = queue.take(0);
    if (part !== undefined) queue.putBackToRest(part, 0, 0);
    expect(queue.nextMs()).toBe(37.5);
  });
});

describe("a batch that the broker finds too large", () => {
  it("is halved until the one record that is too large stands alone, and every other record is taken", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.nat(), (count, seed) => {
        const records = Array.from({ length: count }, () => record(0));
        const culprit = records[seed % count];
        const queue = queueOf(records);
        const taken: number[] = [];
        let found: TestRecord | undefined;
        let calls = 0;
        for (let [part] = queue.take(0); part !== undefined; [part] = queue.take(0)) {
          calls += 1;
          if (part.records.includes(culprit as TestRecord)) found = queue.tooLarge(part) ?? found;
          else {
            queue.taken(part);
            taken.push(...part.records.map(({ id }) => id));
          }
        }
        expect(found).toBe(culprit);
        expect(taken).toEqual(records.filter((one) => one !== culprit).map(({ id }) => id));
        expect(calls).toBeLessThan(4 * Math.log2(count + 1) + 4);
      }),
    );
  });
});

describe("a record that is wanted no more", () => {
  it("is not taken, and does not count", () => {
    const [a, b] = [record(0, 10), record(0, 20)];
    const queue = queueOf([a, b]);
    queue.withdraw(a);
    expect([queue.recordCount, queue.bytes]).toEqual([1, 20]);
    expect(ids(queue.take(0))).toEqual([[b.id]]);
    expect([queue.recordCount, queue.bytes]).toEqual([0, 0]);
  });

  it("is not put back", () => {
    const [a, b] = [record(0), record(0)];
    const queue = queueOf([a, b]);
    const [part] = queue.take(0);
    queue.withdraw(a);
    if (part !== undefined) queue.putBack(part);
    expect(queue.recordCount).toBe(1);
    expect(ids(queue.take(0))).toEqual([[b.id]]);
  });

  it("leaves nothing to wait for when it was the last", () => {
    const [a] = [record(0)];
    const queue = queueOf([a]);
    queue.withdraw(a);
    expect(queue.nextMs()).toBeUndefined();
    expect(queue.take(0)).toEqual([]);
  });
});

it("drains every record that still waits, once", () => {
  const [a, b, c] = [record(0), record(1), record(2)];
  const queue = queueOf([a, b, c]);
  queue.withdraw(b);
  expect(queue.drain()).toEqual([a, c]);
  expect([queue.recordCount, queue.bytes, queue.nextMs()]).toEqual([0, 0, undefined]);
});

it("loses nothing, repeats nothing and keeps the order of each partition, whatever fails in between", () => {
  const event = fc.oneof(
    fc.record({ kind: fc.constant("add" as const), partition: fc.nat(3), bytes: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ kind: fc.constant("call" as const), outcome: fc.constantFrom("taken", "failed", "recalled", "too large") }),
  );
  fc.assert(
    fc.property(fc.array(event, { maxLength: 80 }), (events) => {
      const queue = queueOf([], { recordCount: 6, bytes: 150, partitionBytes: 80 });
      const added: TestRecord[] = [];
      const done: TestRecord[] = [];
      let nowMs = 0;
      const call = (outcome: string) => {
        nowMs += 2_000;
        for (const part of queue.take(nowMs)) {
          if (outcome === "failed") queue.putBackToRest(part, nowMs, 0.5);
          else if (outcome === "recalled") queue.putBack(part);
          else if (outcome === "too large" && part.records.length > 1) queue.tooLarge(part);
          else {
            queue.taken(part);
            done.push(...part.records);
          }
        }
      };
      for (const one of events) {
        if (one.kind === "call") call(one.outcome);
        else {
          const created = record(one.partition, one.bytes);
          added.push(created);
          queue.add(created);
        }
      }
      while (queue.nextMs() !== undefined) call("taken");
      const inOrder = (records: readonly TestRecord[], partition: number) => records.filter((one) => one.partition === partition);
      for (const partition of [0, 1, 2, 3]) expect(inOrder(done, partition)).toEqual(inOrder(added, partition));
      expect([queue.recordCount, queue.bytes]).toEqual([0, 0]);
    }),
  );
});
