import { describe, expect, it } from "vitest";
import { FinishedWork } from "../../../../services/fetcher/core/finished-work.ts";
import { tokenRefresh } from "./records.ts";

const minuteMs = 60_000;
const [a, b] = [tokenRefresh(), tokenRefresh({ refresh_id: "another" })];

function memory() {
  const state = { nowMs: 12_345 };
  return { state, finished: new FinishedWork(() => state.nowMs) };
}

describe("the memory of what is finished", () => {
  it.each([0, 1, 2.5, 4.999, 5, 7])("holds for ten minutes, and for fifteen at most, what is finished in minute %d", (minute) => {
    const { state, finished } = memory();
    state.nowMs += minute * minuteMs;
    finished.add(a);
    const finishedAtMs = state.nowMs;
    for (let passed = 0; passed <= 10; passed += 0.5) {
      state.nowMs = finishedAtMs + passed * minuteMs;
      expect([passed, finished.has(a)]).toEqual([passed, true]);
    }
    state.nowMs = finishedAtMs + 15 * minuteMs;
    expect(finished.has(a)).toBe(false);
  });

  it.each([9.99, 15, 1_000])("is asked after a rest of %d minutes: it has forgotten no more and no less", (minutes) => {
    const { state, finished } = memory();
    finished.add(a);
    state.nowMs += minutes * minuteMs;
    expect(finished.has(a)).toBe(minutes < 10);
    finished.add(b);
    state.nowMs += 10 * minuteMs;
    expect(finished.has(b)).toBe(true);
  });

  it("does not grow without bound, and forgets the oldest first", () => {
    const { finished } = memory();
    const turns = Array.from({ length: 300_000 }, (_, index) => ({
      refresh_id: `refresh ${Math.floor(index / 1_000)}`,
      ordinal: index % 1_000,
      emission: 1,
      attempt: 1,
    }));
    for (const turn of turns) finished.add(turn);
    const asked = turns.filter((_, index) => index % 1_000 === 0);
    const firstKept = asked.findIndex((turn) => finished.has(turn));
    // Of 300 that were asked for.
    expect(firstKept).toBeGreaterThanOrEqual(100);
    expect(firstKept).toBeLessThan(200);
    expect(asked.slice(firstKept).every((turn) => finished.has(turn))).toBe(true);
  });

  it("counts a turn that is finished twice once", () => {
    const { finished } = memory();
    finished.add(a);
    for (let times = 0; times < 300_000; times++) finished.add(b);
    expect(finished.has(a)).toBe(true);
  });

  it.each([{ refresh_id: "another" }, { ordinal: 12 }, { attempt: 2 }, { emission: 2 }])(
    "takes a turn with %o for another",
    (change) => {
      const { finished } = memory();
      finished.add(a);
      expect([finished.has({ ...a }), finished.has({ ...a, ...change })]).toEqual([true, false]);
    },
  );
});
