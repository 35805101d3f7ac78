import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FixedScheduler, type Schedulable } from "../../../../services/fetcher/core/scheduler.ts";

interface Task extends Schedulable {
  readonly name: string;
}

const task = (queue: string, name: string, ceilings: Partial<Schedulable> = {}): Task => ({
  queue,
  name,
  maxConcurrency: null,
  maxRequestsPerSecond: null,
  firstQueuedAt: 0,
  lastAttempt: false,
  ...ceilings,
});

function scheduler(limits: { perQueue?: number; total?: number } = {}) {
  return new FixedScheduler<Task>({ perQueue: 4, total: 100, ...limits });
}

/** Takes until nothing may start. */
function takeAll(from: FixedScheduler<Task>, nowMs = 0): Task[] {
  const taken: Task[] = [];
  for (let next = from.take(nowMs); next !== undefined; next = from.take(nowMs)) taken.push(next);
  return taken;
}

const names = (tasks: readonly Task[]) => tasks.map(({ name }) => name);
const many = (queue: string, count: number, ceilings: Partial<Schedulable> = {}) =>
  Array.from({ length: count }, (_, index) => task(queue, `${queue}${index}`, ceilings));

describe("the scheduler", () => {
  it("gives every queue its turn", () => {
    const fair = scheduler({ total: 6 });
    for (const entry of [...many("a", 5), ...many("b", 5), ...many("c", 1)]) fair.offer(entry, 0);
    expect(names(takeAll(fair))).toEqual(["a0", "b0", "c0", "a1", "b1", "a2"]);
  });

  it("lets a queue go on while another one hangs with all that it may have under way", () => {
    const fair = scheduler({ perQueue: 2 });
    for (const entry of [...many("hanging", 500), ...many("well", 3)]) fair.offer(entry, 0);
    const started = takeAll(fair);
    expect(names(started)).toEqual(["hanging0", "well0", "hanging1", "well1"]);
    const well = started.find(({ name }) => name === "well0");
    if (well === undefined) throw new Error("not started");
    fair.finish(well, undefined, 1);
    expect(names(takeAll(fair, 1))).toEqual(["well2"]);
  });

  it("starts the tasks of a queue in the order in which they came", () => {
    const fair = scheduler({ perQueue: 1_000, total: 1_000 });
    for (const entry of many("a", 50)) fair.offer(entry, 0);
    expect(names(takeAll(fair))).toEqual(names(many("a", 50)));
  });

  it("holds a declared concurrency against everything that the queue has under way", () => {
    const fair = scheduler();
    fair.offer(task("a", "free0"), 0);
    fair.offer(task("a", "free1"), 0);
    fair.offer(task("a", "modest", { maxConcurrency: 2 }), 0);
    const started = takeAll(fair);
    expect(names(started)).toEqual(["free0", "free1"]);
    for (const entry of started) fair.finish(entry, undefined, 1);
    expect(names(takeAll(fair, 1))).toEqual(["modest"]);
  });

  it("does not let a declared concurrency raise our own", () => {
    const fair = scheduler({ perQueue: 3 });
    for (const entry of many("a", 10, { maxConcurrency: 50 })) fair.offer(entry, 0);
    expect(takeAll(fair)).toHaveLength(3);
  });

  it("says when a paced queue may go on, and does not let it go before", () => {
    const fair = scheduler({ perQueue: 100 });
    for (const entry of many("a", 3, { maxRequestsPerSecond: 10 })) fair.offer(entry, 0);
    expect(names(takeAll(fair, 1_000))).toEqual(["a0"]);
    const nextMs = fair.nextStartMs();
    expect(nextMs).toBeCloseTo(1_092);
    expect(takeAll(fair, 1_091)).toEqual([]);
    expect(names(takeAll(fair, 1_092))).toEqual(["a1"]);
  });

  it("lets the others go on while a paced queue waits", () => {
    const fair = scheduler();
    for (const entry of [...many("paced", 5, { maxRequestsPerSecond: 1 }), ...many("free", 2)]) fair.offer(entry, 0);
    expect(names(takeAll(fair, 0))).toEqual(["paced0", "free0", "free1"]);
  });

  it("remembers the pace of a queue that ran empty", () => {
    const fair = scheduler();
    fair.offer(task("a", "a0", { maxRequestsPerSecond: 1 }), 0);
    for (const entry of takeAll(fair, 0)) fair.finish(entry, undefined, 5);
    for (const entry of many("b", 2_000)) {
      fair.offer({ ...entry, queue: entry.name }, 0);
      for (const other of takeAll(fair, 10)) fair.finish(other, undefined, 10);
    }
    fair.offer(task("a", "a1", { maxRequestsPerSecond: 1 }), 0);
    expect(takeAll(fair, 500)).toEqual([]);
    expect(names(takeAll(fair, 1_020))).toEqual(["a1"]);
  });

  it("gives back what it drops and goes on with the rest", () => {
    const fair = scheduler();
    for (const entry of [...many("a", 3), ...many("b", 2)]) fair.offer(entry, 0);
    expect(names(fair.drop(({ queue }) => queue === "a"))).toEqual(["a0", "a1", "a2"]);
    expect(fair.waiting).toBe(2);
    expect(names(takeAll(fair))).toEqual(["b0", "b1"]);
  });

  it("keeps every ceiling and loses nothing, whatever the order of starts and ends", () => {
    const ceiling = fc.record({
      queue: fc.constantFrom("a", "b", "c"),
      maxConcurrency: fc.option(fc.integer({ min: 1, max: 3 })),
      maxRequestsPerSecond: fc.option(fc.integer({ min: 1, max: 20 })),
    });
    const step = fc.oneof(
      { arbitrary: ceiling.map((limits) => ({ kind: "offer" as const, limits })), weight: 3 },
      { arbitrary: fc.nat(50).map((passedMs) => ({ kind: "take" as const, passedMs })), weight: 3 },
      { arbitrary: fc.nat(10).map((which) => ({ kind: "finish" as const, which })), weight: 2 },
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const fair = scheduler({ perQueue: 3, total: 5 });
        const underWay: Task[] = [];
        let nowMs = 0;
        let offered = 0;
        let ended = 0;
        const start = (entry: Task): void => {
          underWay.push(entry);
          const ofQueue = underWay.filter(({ queue }) => queue === entry.queue);
          expect(ofQueue.length).toBeLessThanOrEqual(Math.min(3, entry.maxConcurrency ?? 3));
          expect(underWay.length).toBeLessThanOrEqual(5);
        };
        const end = (which: number): void => {
          const [entry] = underWay.splice(which % underWay.length, 1);
          if (entry === undefined) return;
          fair.finish(entry, undefined, nowMs);
          ended += 1;
        };
        for (const move of steps) {
          if (move.kind === "offer") {
            offered += 1;
            fair.offer({ ...move.limits, firstQueuedAt: 0, lastAttempt: false, name: String(offered) }, 0);
          } else if (move.kind === "take") {
            nowMs += move.passedMs;
            const entry = fair.take(nowMs);
            if (entry !== undefined) start(entry);
          } else if (underWay.length > 0) end(move.which);
          expect(fair.started).toBe(underWay.length);
          expect(fair.waiting).toBe(offered - ended - underWay.length);
        }
        for (let turns = 0; (fair.waiting > 0 || underWay.length > 0) && turns < 10_000; turns++) {
          nowMs = Math.max(nowMs, fair.nextStartMs() ?? nowMs);
          const entry = fair.take(nowMs);
          if (entry !== undefined) start(entry);
          else end(0);
        }
        expect(ended).toBe(offered);
      }),
    );
  });
});
