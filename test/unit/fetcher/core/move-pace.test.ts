import { expect, it } from "vitest";
import { MovePace } from "../../../../services/fetcher/core/move-pace.ts";

/** How long one has to wait after so many moves, while so many calls end every second. */
function waitMs(moves: number, callsPerSecond: number): number {
  const pace = new MovePace();
  for (let call = 0; call < callsPerSecond; call += 1) pace.called(Math.floor((call * 1_000) / callsPerSecond));
  pace.spend(moves, 999);
  return Math.round(pace.readyAtMs(999) - 999);
}

it.each([
  ["nobody is called", 0, 50],
  ["a few calls are made", 200, 56],
  ["half of the time is taken", 1_000, 100],
  ["many calls are made", 1_840, 500],
  ["more calls are made than can be", 20_000, 500],
])("moves take the time that is left: %s", (_case, callsPerSecond, expected) => {
  expect(waitMs(1_000, callsPerSecond)).toBe(expected);
});

it("saves nothing up: after a long rest no more may be moved at once than ever", () => {
  const pace = new MovePace();
  pace.spend(1_000, 0);
  expect(pace.readyAtMs(3_600_000)).toBe(3_600_000);
  pace.spend(1_000, 3_600_000);
  expect(pace.readyAtMs(3_600_000)).toBeCloseTo(3_600_050);
});

it("lets what was moved beside many calls be paid for quickly when the calls have ended", () => {
  const pace = new MovePace();
  for (let call = 0; call < 4_000; call += 1) pace.called(0);
  pace.spend(10_000, 0);
  expect(pace.readyAtMs(0)).toBe(5_000);
  expect(pace.readyAtMs(500)).toBe(5_000);
  expect(pace.readyAtMs(2_000)).toBeLessThan(2_500);
});
