import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RecordProducer } from "../../../../services/common/kafka/contracts.ts";
import { BrokerClock, teachBrokerClock } from "../../../../services/common/retry/broker-clock.ts";

/** Fractions of a millisecond that add up exactly: what is compared is the clock, not the rounding of its sums. */
const fractionsOfMs = (max: number) => fc.integer({ min: 0, max: max * 64 }).map((count) => count / 64);

/** A record that was appended `appendedMs` after the monotonic zero, sent before that and seen after it. */
const sights = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 0, max: 10_000 }),
    sendMs: fractionsOfMs(3_000),
    seenMs: fractionsOfMs(600_000),
    ours: fc.boolean(),
  }),
  { minLength: 1, maxLength: 30 },
);

describe("the broker's clock", () => {
  test("is unknown before the first record was seen", () => {
    expect(new BrokerClock().nowMs(123)).toBeUndefined();
  });

  test("is never shown ahead of what it is", () => {
    fc.assert(
      fc.property(sights, fc.integer({ min: 0, max: 2_000_000 }), (list, aheadMs) => {
        const clock = new BrokerClock();
        let monotonicMs = 0;
        for (const { afterMs, sendMs, seenMs, ours } of list) {
          const appendedAtMs = monotonicMs + afterMs;
          monotonicMs = appendedAtMs + seenMs;
          const appendTimeMs = Math.floor(appendedAtMs + aheadMs);
          clock.observe({ appendTimeMs, seenAtMs: monotonicMs, ...(ours ? { sentAtMs: appendedAtMs - sendMs } : {}) });
          expect(clock.nowMs(monotonicMs)).toBeLessThanOrEqual(monotonicMs + aheadMs);
          expect(clock.nowMs(monotonicMs)).toBeGreaterThanOrEqual(appendTimeMs);
        }
      }),
    );
  });

  test("keeps the best that was seen: an old record does not set it back", () => {
    const clock = new BrokerClock();
    clock.observe({ appendTimeMs: 1_000_000, seenAtMs: 10 });
    clock.observe({ appendTimeMs: 900_000, seenAtMs: 20 });
    expect(clock.nowMs(110)).toBe(1_000_100);
  });

  test("goes back with the broker's own clock, as soon as an acknowledgement shows it", () => {
    const clock = new BrokerClock();
    clock.observe({ appendTimeMs: 1_000_000, seenAtMs: 0 });
    clock.observe({ appendTimeMs: 700_010, sentAtMs: 8, seenAtMs: 10 });
    expect(clock.nowMs(10)).toBe(700_010);
  });
});

test("a taught clock knows the time once a record is acknowledged, and learns nothing from one that is not", async () => {
  const clock = new BrokerClock();
  let nowMs = 0;
  const producer: RecordProducer = {
    send: async () => ({ ok: false, reason: "unknown", message: "" }),
    deliver: async (records) => {
      nowMs = 40;
      return records.map(() => ({ ok: true as const, partition: 0, offset: 0, appendTimeMs: 5_000 }));
    },
    close: async () => undefined,
  };
  const taught = teachBrokerClock(producer, clock, { nowMs: () => 0, monotonicMs: () => nowMs });
  const record = { topic: "t", key: "k", value: Buffer.alloc(0) };
  await taught.send(record, 100);
  expect(clock.nowMs(0)).toBeUndefined();
  await taught.deliver([record]);
  expect(clock.nowMs(50)).toBe(5_010);
});
