import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Budget, PartitionWindow } from "../../../../../services/common/kafka/consume/window.ts";

/** Offsets with gaps between them, as compaction and markers leave them. */
const offsets = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 40 }).map((steps) => {
  let offset = -1;
  return steps.map((step) => {
    offset += step;
    return offset;
  });
});

type Step = { readonly kind: "add" | "finish" | "readd" | "commit"; readonly pick: number };
const steps = fc.array(
  fc.record({
    kind: fc.constantFrom("add", "add", "finish", "finish", "readd", "commit"),
    pick: fc.nat({ max: 100 }),
  }) as fc.Arbitrary<Step>,
  { maxLength: 120 },
);

describe("the window of a partition", () => {
  test("never commits past an unfinished record, never goes back, and in the end commits everything", () => {
    fc.assert(
      fc.property(offsets, steps, (log, script) => {
        const window = new PartitionWindow(0, 0);
        const finished = new Set<number>();
        let added = 0;
        let committed = 0;
        const commit = (): void => {
          const mark = window.toCommit;
          if (mark === undefined) return;
          expect(mark).toBeGreaterThan(committed);
          expect(log.slice(0, added).filter((offset) => offset < mark && !finished.has(offset))).toEqual([]);
          expect(log.slice(added).filter((offset) => offset < mark)).toEqual([]);
          window.noteCommitted(mark);
          committed = mark;
        };
        for (const { kind, pick } of script) {
          const offset = log[pick % log.length] ?? 0;
          const known = log.indexOf(offset) < added;
          if (kind === "add" && added < log.length) expect(window.add(log[added++] ?? 0)).toBe("new");
          if (kind === "readd" && known) expect(window.add(offset)).toBe(finished.has(offset) ? "finished" : "in_flight");
          if (kind === "finish" && known) {
            expect(window.finish(offset) === undefined).toBe(finished.has(offset));
            finished.add(offset);
          }
          if (kind === "commit") commit();
        }
        for (const offset of log.slice(added)) window.add(offset);
        added = log.length;
        for (const offset of log.toReversed()) {
          window.finish(offset);
          finished.add(offset);
        }
        commit();
        expect(committed).toBe((log.at(-1) ?? 0) + 1);
      }),
    );
  });

  test("commits from what the group has committed, not from the first offset it saw", () => {
    const window = new PartitionWindow(10, 10);
    window.add(15);
    expect(window.toCommit).toBe(15);
    expect(window.lowWaterMark).toBe(15);
  });

  test("passes over the end of a batch that holds no record", () => {
    const window = new PartitionWindow(0, 0);
    window.add(3);
    window.pass(7);
    window.finish(3);
    expect(window.toCommit).toBe(7);
    expect(window.add(5)).toBe("finished");
  });

  test("leaves the group's offset alone until it is past what another member committed", () => {
    const window = new PartitionWindow(0, 0);
    for (const offset of [0, 1, 2]) window.add(offset);
    window.pass(50);
    window.noteCommitted(50);
    expect(window.toCommit).toBeUndefined();
    for (const offset of [0, 1, 2]) window.finish(offset);
    expect(window.toCommit).toBeUndefined();
    window.add(50);
    window.finish(50);
    expect(window.toCommit).toBe(51);
  });

  test("hands out a held record once, and not when it was finished while it was held", () => {
    const window = new PartitionWindow(0, 0);
    window.add(0);
    window.add(1);
    expect(window.finish(1)).toBe(0);
    expect(window.handOut(1, 100)).toBe(false);
    expect(window.handOut(0, 70)).toBe(true);
    expect(window.handedOut()).toEqual([70]);
    expect(window.finish(0)).toBe(70);
    expect(window.finish(0)).toBeUndefined();
  });
});

describe("the budget of the process", () => {
  test.each([
    { limit: "records", bytes: 1, taken: 10 },
    { limit: "bytes", bytes: 300, taken: 4 },
  ])("is full at its limit of $limit, and roomy again well below it", ({ bytes, taken }) => {
    const budget = new Budget({ records: 10, bytes: 1_000 });
    let count = 0;
    while (!budget.full) {
      budget.take(bytes);
      count += 1;
    }
    expect(count).toBe(taken);
    budget.give(bytes);
    expect([budget.full, budget.roomy]).toEqual([false, false]);
    budget.give(bytes);
    expect(budget.roomy).toBe(true);
    expect([budget.records, budget.bytes]).toEqual([taken - 2, (taken - 2) * bytes]);
  });
});
