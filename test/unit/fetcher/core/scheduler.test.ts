import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CallResult } from "../../../../services/fetcher/core/results.ts";
import type { Schedulable } from "../../../../services/fetcher/core/scheduler.ts";
import { AdaptiveScheduler } from "../../../../services/fetcher/core/scheduling/adaptive-scheduler.ts";

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
  return new AdaptiveScheduler<Task>({ perQueue: 4, total: 100, ...limits });
}

/** Takes until nothing may start. */
function takeAll(from: AdaptiveScheduler<Task>, nowMs = 0): Task[] {
  const taken: Task[] = [];
  for (let next = from.take(nowMs); next !== undefined; next = from.take(nowMs)) taken.push(next);
  return taken;
}

const measured = { startedAtMs: 0, durationMs: 10, bodyBytes: 2 };
const answered: CallResult = { ok: true, text: "{}", contentHash: "", ...measured };
const missing: CallResult = { ok: false, detail: "unexpected_status", status: 404, excerpt: "", ...measured };
const timedOut: CallResult = { ok: false, detail: "timeout", status: null, excerpt: null, ...measured };
const refused = (retryAfterMs?: number): CallResult => ({
  ok: false,
  detail: "rate_limited",
  status: 429,
  excerpt: "",
  ...measured,
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

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
    for (const entry of many("a", 50, { maxConcurrency: 50 })) fair.offer(entry, 0);
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

  it("starts with the concurrency that the owner declares, and with a few calls where none does", () => {
    const fair = scheduler({ perQueue: 256, total: 1_000 });
    for (const entry of [...many("free", 100), ...many("sure", 100, { maxConcurrency: 40 })]) fair.offer(entry, 0);
    const queues = takeAll(fair).map(({ queue }) => queue);
    expect(queues.filter((queue) => queue === "free")).toHaveLength(8);
    expect(queues.filter((queue) => queue === "sure")).toHaveLength(40);
  });

  it("doubles what a host gets in a round trip while it answers, and takes less after a refusal or a time-out", () => {
    const fair = scheduler({ perQueue: 256, total: 1_000 });
    for (const entry of many("a", 500)) fair.offer(entry, 0);
    const round = (result: CallResult, nowMs: number) => {
      for (const entry of underWay) fair.finish(entry, result, nowMs);
      underWay = takeAll(fair, nowMs);
      return underWay.length;
    };
    let underWay = takeAll(fair, 0);
    expect([round(answered, 100), round(answered, 200)]).toEqual([16, 32]);
    expect(round(missing, 300)).toBe(64);
    expect(round(timedOut, 3_300)).toBe(32);
  });

  it("takes the oldest of a queue first, whenever it came, and equals as they came", () => {
    const fair = scheduler({ perQueue: 256, total: 1_000 });
    const ages = [500, 3, 500, 1, 2, 3, 700];
    for (const [index, firstQueuedAt] of ages.entries()) {
      fair.offer(task("a", `${firstQueuedAt}/${index}`, { firstQueuedAt, maxConcurrency: 10 }), 0);
    }
    expect(names(takeAll(fair))).toEqual(["1/3", "2/4", "3/1", "3/5", "500/0", "500/2", "700/6"]);
  });

  it("sheds the newest first, last attempts among them, and knows how soon the rest will be done", () => {
    const fair = scheduler({ perQueue: 10 });
    for (const firstQueuedAt of [5, 1, 4]) fair.offer(task("a", `${firstQueuedAt}`, { firstQueuedAt }), 0);
    fair.offer(task("a", "6 last", { firstQueuedAt: 6, lastAttempt: true }), 0);
    expect(names(fair.shed("a", 2))).toEqual(["6 last", "5"]);
    expect(fair.waiting).toBe(2);
    expect(names(fair.shed("a", 9))).toEqual(["4", "1"]);
    for (const entry of many("b", 3_000)) fair.offer(entry, 0);
    expect(fair.outlook("b", 0)).toMatchObject({ queue: "b", waiting: 3_000, asleepMs: 0 });
    expect([...fair.outlooks(0)]).toEqual([fair.outlook("b", 0)]);
  });

  it("takes no host for faster than its owner allows, or than its calls last that have not ended yet", () => {
    const fair = scheduler({ perQueue: 10 });
    const paceOf = (queue: string, nowMs: number) => fair.outlook(queue, nowMs).perSecond;
    fair.offer(task("few", "a", { maxConcurrency: 2 }), 0);
    fair.offer(task("paced", "b", { maxRequestsPerSecond: 5 }), 0);
    expect([paceOf("few", 0), paceOf("paced", 0)]).toEqual([20, 5]);
    for (const entry of many("hangs", 100)) fair.offer(entry, 0);
    takeAll(fair, 0);
    const young = paceOf("hangs", 100);
    expect(young).toBeGreaterThan(50);
    expect(paceOf("hangs", 900)).toBeCloseTo(young / 9);
    expect(paceOf("hangs", 2_000)).toBeLessThanOrEqual(young / 20);
  });

  it("measures no pace by what comes when there is too little to do", () => {
    const fair = scheduler({ perQueue: 10 });
    for (let nowMs = 0; nowMs < 3_000; nowMs += 100) {
      fair.offer(task("a", `${nowMs}`), nowMs);
      for (const started of takeAll(fair, nowMs)) fair.finish(started, answered, nowMs + 99);
    }
    for (const entry of many("a", 100)) fair.offer(entry, 3_000);
    expect(fair.outlook("a", 3_000).perSecond).toBeGreaterThan(100);
  });

  it("lets a host sleep until the latest instant that it asked for, and wakes it with one call", () => {
    const fair = scheduler({ perQueue: 100 });
    for (const entry of many("a", 50)) fair.offer(entry, 0);
    const [first, second, ...rest] = takeAll(fair, 0);
    if (first === undefined || second === undefined) throw new Error("not started");
    fair.finish(first, refused(30_000), 10);
    fair.finish(second, refused(5_000), 20);
    for (const entry of rest) fair.finish(entry, answered, 30);
    expect(fair.nextStartMs()).toBe(30_010);
    expect(takeAll(fair, 30_009)).toEqual([]);
    expect(fair.outlook("a", 10_010).asleepMs).toBe(20_000);
    expect(fair.hosts(20_000).asleep).toBe(1);
    const [probe, ...more] = takeAll(fair, 30_010);
    expect(more).toEqual([]);
    if (probe === undefined) throw new Error("not started");
    fair.finish(probe, answered, 30_050);
    expect(takeAll(fair, 30_050).length).toBeGreaterThan(1);
  });

  it("puts a host to sleep that refuses half of its calls, and not for one refusal", () => {
    const fair = scheduler({ perQueue: 100 });
    for (const entry of many("a", 50)) fair.offer(entry, 0);
    const started = takeAll(fair, 0);
    for (const entry of started.slice(0, 1)) fair.finish(entry, refused(), 10);
    expect(fair.hosts(10).asleep).toBe(0);
    for (const entry of started.slice(1)) fair.finish(entry, refused(), 20);
    expect(fair.hosts(20).asleep).toBe(1);
    expect(takeAll(fair, 100)).toEqual([]);
    expect(takeAll(fair, fair.nextStartMs() ?? 0)).toHaveLength(1);
  });

  it("makes a last attempt only after ten calls without a refusal, lets the others go on, and does not wait for ever", () => {
    const fair = scheduler({ perQueue: 100 });
    for (const entry of many("a", 50, { firstQueuedAt: 9 })) fair.offer(entry, 0);
    const [first, ...others] = takeAll(fair, 0);
    if (first === undefined) throw new Error("not started");
    for (const entry of others) fair.finish(entry, answered, 10);
    fair.finish(first, refused(), 20);
    fair.offer(task("a", "last", { lastAttempt: true }), 20);
    let startedMs: number | undefined;
    let cleanCount = 0;
    for (let nowMs = 21; startedMs === undefined && nowMs < 120_000; nowMs += 50) {
      for (const entry of takeAll(fair, nowMs)) {
        if (entry.name === "last") startedMs = nowMs;
        else {
          cleanCount += 1;
          fair.finish(entry, answered, nowMs + 10);
        }
      }
    }
    expect(cleanCount).toBeGreaterThanOrEqual(10);
    expect(startedMs).toBeLessThan(60_000);
  });

  it("makes a last attempt of a queue that has nothing else after a pause", () => {
    const fair = scheduler();
    fair.offer(task("a", "first"), 0);
    for (const entry of takeAll(fair, 0)) fair.finish(entry, refused(), 10);
    fair.offer(task("a", "last", { lastAttempt: true }), 2_000);
    expect(takeAll(fair, 2_000)).toEqual([]);
    expect(fair.nextStartMs()).toBe(2_010);
    expect(names(takeAll(fair, 2_010))).toEqual(["last"]);
  });

  it("gives another project of an origin what was learned there", () => {
    const fair = scheduler({ perQueue: 256, total: 1_000 });
    const origin = "https://api.example";
    for (const entry of many(`1 ${origin}`, 8)) fair.offer(entry, 0);
    for (const [index, entry] of takeAll(fair, 0).entries()) fair.finish(entry, index < 3 ? answered : refused(), 10 + index);
    fair.offer(task(`1 ${origin}`, "keeps the queue busy"), 20);
    for (const entry of many(`2 ${origin}`, 50)) fair.offer(entry, 5_000);
    for (const entry of many("3 https://other.example", 50)) fair.offer(entry, 5_000);
    const queues = takeAll(fair, 5_000).map(({ queue }) => queue);
    expect(queues.filter((queue) => queue === `2 ${origin}`).length).toBeLessThan(5);
    expect(queues.filter((queue) => queue === "3 https://other.example")).toHaveLength(8);
  });

  it("lets a host that hangs pay for its time when slots are scarce", () => {
    const fair = scheduler({ perQueue: 100, total: 10 });
    const ceilings = { maxConcurrency: 50 };
    for (const entry of [...many("hanging", 200, ceilings), ...many("well", 20_000, ceilings)]) fair.offer(entry, 0);
    const underWay: { entry: Task; endsMs: number }[] = [];
    let slotMs = 0;
    for (let nowMs = 0; nowMs < 30_000; nowMs += 10) {
      for (const call of underWay.splice(0)) {
        if (call.endsMs > nowMs) underWay.push(call);
        else fair.finish(call.entry, answered, nowMs);
      }
      for (const entry of takeAll(fair, nowMs)) underWay.push({ entry, endsMs: nowMs + (entry.queue === "well" ? 20 : 2_000) });
      slotMs += 10 * underWay.filter(({ entry }) => entry.queue === "well").length;
    }
    expect(slotMs / 300_000).toBeGreaterThan(0.45);
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
