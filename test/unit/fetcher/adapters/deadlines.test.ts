import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Deadlines, type Expiring } from "../../../../services/fetcher/adapters/deadlines.ts";

const limitMs = 3_000;
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

class Call implements Expiring {
  looks = 0;
  expiredAtMs: number | undefined;
  readonly #deadlines: Deadlines<Call>;

  constructor(deadlines: Deadlines<Call>) {
    this.#deadlines = deadlines;
  }

  look(): void {
    this.looks += 1;
  }

  expire(): void {
    this.expiredAtMs = performance.now();
    this.#deadlines.end(this);
  }
}

let deadlines: Deadlines<Call>;
let startMs: number;
beforeEach(() => {
  // Timers and clock together, so that no stall of this machine counts.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setImmediate", "performance"] });
  deadlines = new Deadlines<Call>(limitMs, clock);
  startMs = performance.now();
});
afterEach(() => void vi.useRealTimers());

function start(): Call {
  const call = new Call(deadlines);
  deadlines.start(call);
  return call;
}
/** A loop that is not blocked turns all the time. */
const pass = (ms: number) => vi.advanceTimersByTime(ms);

describe("the deadline of 3 s", () => {
  it.each([
    [2_990, false],
    [2_999, false],
    [3_000, true],
    [3_010, true],
  ])("takes what comes after %i ms for late: %s", (afterMs, late) => {
    const call = start();
    // The sweep has not come by yet when the answer does.
    call.expire = () => {};
    pass(afterMs);
    expect(deadlines.isLate(call)).toBe(late);
  });

  it("ends a call of which nothing is heard within one sweep of it, and not before", () => {
    const call = start();
    pass(2_999);
    expect(call.expiredAtMs).toBeUndefined();
    pass(41);
    expect((call.expiredAtMs ?? 0) - startMs).toBeGreaterThanOrEqual(limitMs);
    expect(deadlines.size).toBe(0);
  });

  it("is each call's own", () => {
    const first = start();
    pass(1_500);
    const second = start();
    pass(1_540);
    expect([first.expiredAtMs, second.expiredAtMs].map((at) => at !== undefined)).toEqual([true, false]);
    pass(1_500);
    expect(second.expiredAtMs).toBeDefined();
  });

  it("stands still while our own loop is blocked, but for a moment", () => {
    const call = start();
    pass(2_000);
    // 1.5 s in which no timer could run.
    performance.now = (
      (now) => () =>
        now() + 1_500
    )(performance.now.bind(performance));
    expect(deadlines.isLate(call)).toBe(false);
    pass(900);
    expect(call.expiredAtMs).toBeUndefined();
    expect(deadlines.isLate(call)).toBe(false);
    pass(140);
    expect(call.expiredAtMs).toBeDefined();
  });

  it("looks at calls that take long, again and again, and at no others", () => {
    const quick = start();
    pass(90);
    deadlines.end(quick);
    const slow = start();
    pass(1_000);
    expect(quick.looks).toBe(0);
    expect(slow.looks).toBeGreaterThan(20);
  });

  it("costs no timer while nothing is under way", () => {
    const call = start();
    deadlines.end(call);
    pass(100);
    expect(vi.getTimerCount()).toBe(0);
  });
});
