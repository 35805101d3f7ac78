import { describe, expect, it } from "vitest";
import { LoopTime } from "../../../../services/fetcher/core/loop-time.ts";

describe("time of the event loop", () => {
  it("is real time while the loop turns", () => {
    const time = new LoopTime(1_000);
    for (let now = 1_020; now <= 4_000; now += 20) time.turn(now);
    expect(time.read(4_010)).toBe(3_010);
  });

  it("stands still while the loop is blocked: an answer that came in meanwhile is not late", () => {
    const time = new LoopTime(0);
    for (let now = 20; now <= 2_000; now += 20) time.turn(now);
    // Blocked for five seconds; read before and after the timers had their turn.
    expect(time.read(7_000)).toBe(2_050);
    time.turn(7_000);
    expect(time.read(7_010)).toBe(2_060);
  });
});
