import { expect, it } from "vitest";
import { hourOf, limitHeaders, secondsUntilReset } from "../../../../services/ingress/core/hour.ts";

const nineMicros = Date.UTC(2026, 0, 31, 9) * 1000;

it.each([
  ["its first microsecond", nineMicros, 9],
  ["its last microsecond", nineMicros + 3_599_999_999, 9],
  ["the first of the next", nineMicros + 3_600_000_000, 10],
])("%s belongs to the hour", (_name, micros, hour) => {
  const { startMicros, endMicros } = hourOf(micros);
  expect([new Date(startMicros / 1000).getUTCHours(), endMicros - startMicros]).toEqual([hour, 3_600_000_000]);
});

it("tells what is left and when the next hour begins, in UNIX seconds", () => {
  expect(limitHeaders({ limit: 20, used: 3 }, hourOf(nineMicros))).toEqual({
    "x-svc-refreshes-limit": "20",
    "x-svc-remaining-refreshes": "17",
    "x-svc-refresh-limit-reset": String(Date.UTC(2026, 0, 31, 10) / 1000),
  });
});

it("never tells less than nothing is left, when a project's limit was lowered", () => {
  expect(limitHeaders({ limit: 2, used: 5 }, hourOf(nineMicros))["x-svc-remaining-refreshes"]).toBe("0");
});

it.each([
  [0, 3_600],
  [1, 3_600],
  [3_599_000, 1],
  [3_599_999, 1],
])("%i ms into the hour a client has to wait %i s", (ms, seconds) => {
  expect(secondsUntilReset(hourOf(nineMicros), nineMicros / 1000 + ms)).toBe(seconds);
});
