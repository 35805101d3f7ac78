import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HeldRecords, tierFor } from "../../../../services/common/retry/delay-tier.ts";

const tiers = [2_000, 10_000, 60_000, 600_000].map((delayMs) => ({ delayMs }));

test.each([
  { waitMs: 0, delayMs: 2_000 },
  { waitMs: 2_000, delayMs: 2_000 },
  { waitMs: 2_001, delayMs: 10_000 },
  { waitMs: 59_999, delayMs: 60_000 },
  { waitMs: 600_000, delayMs: 600_000 },
  { waitMs: 9_999_999, delayMs: 600_000 },
])("a wait of $waitMs ms goes to the smallest tier that is long enough, $delayMs ms", ({ waitMs, delayMs }) => {
  expect(tierFor(waitMs, tiers)).toEqual({ delayMs });
});

describe("the held records of a tier's partition", () => {
  test("leave in order, each when it is due and not before", () => {
    const gaps = fc.array(fc.nat({ max: 50 }), { maxLength: 30 });
    fc.assert(
      fc.property(gaps, fc.array(fc.nat({ max: 100 }), { maxLength: 60 }), fc.nat({ max: 500 }), (appendGaps, waits, delayMs) => {
        let timestampMs = 1_000;
        const records = appendGaps.map((gap) => {
          timestampMs += gap;
          return { timestampMs };
        });
        const held = new HeldRecords<{ timestampMs: number }>(delayMs);
        held.hold(records);
        let nowMs = 1_000;
        let released = 0;
        for (const wait of waits) {
          nowMs += wait;
          for (const record of held.release(nowMs)) {
            expect(record).toBe(records[released]);
            // The broker cut what followed the millisecond from its append time.
            expect(record.timestampMs + 1 + delayMs).toBeLessThanOrEqual(nowMs);
            released += 1;
          }
          expect(held.nextDueMs === undefined || held.nextDueMs > nowMs).toBe(true);
        }
        expect(held.size).toBe(records.length - released);
        expect(held.release(timestampMs + 1 + delayMs)).toHaveLength(records.length - released);
      }),
    );
  });

  test("wait behind a head that is not due, though the broker's clock was set back after it", () => {
    const held = new HeldRecords<{ timestampMs: number }>(100);
    held.hold([{ timestampMs: 1_000 }, { timestampMs: 500 }]);
    expect(held.release(1_050)).toEqual([]);
    expect(held.release(1_100)).toEqual([]);
    expect(held.release(1_101)).toHaveLength(2);
  });
});
