import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RateCeiling } from "../../../../services/fetcher/core/rate-ceiling.ts";

/** Starts as early as the ceiling lets it, with a timer that is late by what `lateness` says. */
function startTimes(perSecond: number, lateness: readonly number[]): number[] {
  const ceiling = new RateCeiling();
  let nowMs = 0;
  return lateness.map((lateMs) => {
    nowMs = Math.max(nowMs, ceiling.nextAtMs()) + lateMs;
    ceiling.start(perSecond, nowMs);
    return nowMs;
  });
}

describe("a declared rate", () => {
  it("is never exceeded in any second, however late the timers are", () => {
    const lateness = fc.array(
      fc.oneof(fc.constant(0), fc.double({ min: 0, max: 30, noNaN: true }), fc.integer({ min: 0, max: 3_000 })),
      {
        minLength: 1,
        maxLength: 400,
      },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), lateness, (perSecond, late) => {
        const times = startTimes(perSecond, late);
        for (const [index, time] of times.entries()) {
          expect(times.slice(index).filter((other) => other <= time + 1_000).length).toBeLessThanOrEqual(perSecond);
        }
      }),
    );
  });

  it.each([1, 5, 100, 400])("of %i a second is nearly used up, with timers that are a millisecond late", (perSecond) => {
    const times = startTimes(
      perSecond,
      Array.from({ length: perSecond * 10 }, () => 1),
    );
    const perSecondReached = (times.length - 1) / ((times.at(-1) ?? 0) / 1_000);
    expect(perSecondReached).toBeGreaterThan(perSecond * 0.95);
  });

  it("starts the first call at once", () => expect(new RateCeiling().nextAtMs()).toBeLessThan(0));
});
