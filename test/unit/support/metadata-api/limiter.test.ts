import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLimiter, type Limit } from "../../../support/metadata-api/limiter.ts";

/** When each of the calls at these times was admitted. */
function admitted(limit: Limit, callsAtMs: readonly number[]): number[] {
  const limiter = createLimiter(limit);
  return callsAtMs.filter((atMs) => limiter(atMs, 0));
}
const everyMs = (count: number, fromMs = 0, stepMs = 1) => Array.from({ length: count }, (_, index) => fromMs + index * stepMs);
const within = (times: readonly number[], fromMs: number, toMs: number) =>
  times.filter((atMs) => atMs >= fromMs && atMs < toMs).length;
/** Times that do not go back, many of them equal, over a few seconds. */
const arrivals = fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 400 }).map((gaps) => {
  let atMs = 0;
  return gaps.map((gapMs) => {
    atMs += gapMs;
    return atMs;
  });
});
const rate = fc.integer({ min: 1, max: 60 });

describe("a fixed window", () => {
  it("admits exactly the rate in every whole second that asks for more", () => {
    const times = admitted({ kind: "fixed_window", perSecond: 25 }, everyMs(5_000));
    expect([0, 1, 2, 3, 4].map((second) => within(times, second * 1_000, second * 1_000 + 1_000))).toEqual([25, 25, 25, 25, 25]);
  });

  it("lets twice the rate through around a border", () => {
    const limit: Limit = { kind: "fixed_window", perSecond: 25 };
    expect(admitted(limit, [...everyMs(25, 975), ...everyMs(50, 1_000)])).toHaveLength(50);
  });
});

describe("a sliding window", () => {
  it("admits exactly the rate in every second that asks for more, wherever it begins", () => {
    const times = admitted({ kind: "sliding_window", perSecond: 25 }, everyMs(5_000));
    for (let fromMs = 0; fromMs <= 4_000; fromMs += 10) expect(within(times, fromMs, fromMs + 1_000)).toBe(25);
  });

  it("never admits more, and refuses only when the second before is full", () => {
    fc.assert(
      fc.property(arrivals, rate, (callsAtMs, perSecond) => {
        const limiter = createLimiter({ kind: "sliding_window", perSecond });
        const times: number[] = [];
        for (const atMs of callsAtMs) {
          const full = within(times, atMs - 999, atMs + 1) >= perSecond;
          expect(limiter(atMs, 0)).toBe(!full);
          if (!full) times.push(atMs);
        }
      }),
    );
  });
});

describe("a token bucket", () => {
  it("admits its burst at once, and then exactly the rate", () => {
    const times = admitted({ kind: "token_bucket", perSecond: 25, burst: 10 }, everyMs(6_000));
    expect(within(times, 0, 10)).toBe(10);
    expect(times).toHaveLength(10 + 25 * 5 + 24);
    expect(within(times, 1_000, 2_000)).toBe(25);
    expect(within(times, 4_000, 5_000)).toBe(25);
  });

  it("does not drift at a rate whose interval is no round number", () => {
    const times = admitted({ kind: "token_bucket", perSecond: 3, burst: 2 }, everyMs(600_000));
    expect(Math.abs(times.length - 3 * 600)).toBeLessThanOrEqual(2);
  });

  it("saves up no more than its burst, and admits below one call a second", () => {
    expect(admitted({ kind: "token_bucket", perSecond: 100, burst: 5 }, Array(50).fill(60_000))).toHaveLength(5);
    expect(admitted({ kind: "token_bucket", perSecond: 0.5, burst: 1 }, everyMs(100, 0, 100))).toEqual([
      0, 2_000, 4_000, 6_000, 8_000,
    ]);
  });

  it("never admits more in any stretch of time than burst and rate give", () => {
    fc.assert(
      fc.property(arrivals, rate, fc.integer({ min: 1, max: 20 }), (callsAtMs, perSecond, burst) => {
        const times = admitted({ kind: "token_bucket", perSecond, burst }, callsAtMs);
        for (const [from, fromMs] of times.entries()) {
          for (const [to, toMs] of times.entries()) {
            if (to >= from) expect(to - from + 1).toBeLessThanOrEqual(burst + ((toMs - fromMs) / 1_000) * perSecond + 1e-6);
          }
        }
      }),
      { numRuns: 30 },
    );
  });
});

it("a limit on calls in flight looks at nothing else", () => {
  const limiter = createLimiter({ kind: "in_flight", calls: 3 });
  expect([0, 1, 2, 3, 4, 2].map((inFlight) => limiter(0, inFlight))).toEqual([true, true, true, false, false, true]);
});
