import { expect, it } from "vitest";
import { isoFromMicros, microsFromMs } from "../../../services/common/clock.ts";

it.each([
  [0, "1970-01-01T00:00:00.000000Z"],
  [1_769_847_330_123_456, "2026-01-31T08:15:30.123456Z"],
  [1_769_847_330_000_007, "2026-01-31T08:15:30.000007Z"],
  [1_769_847_330_999_999, "2026-01-31T08:15:30.999999Z"],
])("keeps every microsecond of %d in its ISO 8601 text", (micros, text) => {
  expect(isoFromMicros(micros)).toBe(text);
});

it("gives micros as whole numbers, whatever the fraction of the millisecond", () => {
  expect(microsFromMs(1_769_847_330_123.5)).toBe(1_769_847_330_123_500);
});
