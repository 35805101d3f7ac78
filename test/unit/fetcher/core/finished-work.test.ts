import { describe, expect, it } from "vitest";
import { FinishedWork, identityOf } from "../../../../services/fetcher/core/finished-work.ts";
import { tokenRefresh } from "./records.ts";

const minuteMs = 60_000;

function memory() {
  const state = { nowMs: 12_345 };
  return { state, finished: new FinishedWork(() => state.nowMs) };
}

describe("the memory of what is finished", () => {
  it.each([0, 1, 2.5, 4.999, 5, 7])("holds for ten minutes, and for fifteen at most, what is finished in minute %d", (minute) => {
    const { state, finished } = memory();
    state.nowMs += minute * minuteMs;
    finished.add("a");
    const finishedAtMs = state.nowMs;
    for (let passed = 0; passed <= 10; passed += 0.5) {
      state.nowMs = finishedAtMs + passed * minuteMs;
      expect([passed, finished.has("a")]).toEqual([passed, true]);
    }
    state.nowMs = finishedAtMs + 15 * minuteMs;
    expect(finished.has("a")).toBe(false);
  });

  it.each([9.99, 15, 1_000])("is asked after a rest of %d minutes: it has forgotten no more and no less", (minutes) => {
    const { state, finished } = memory();
    finished.add("a");
    state.nowMs += minutes * minuteMs;
    expect(finished.has("a")).toBe(minutes < 10);
    finished.add("b");
    state.nowMs += 10 * minuteMs;
    expect(finished.has("b")).toBe(true);
  });

  it("does not grow without bound, and forgets the oldest first", () => {
    const { finished } = memory();
    const identities = Array.from({ length: 300_000 }, (_, index) => `token ${index}`);
    for (const identity of identities) finished.add(identity);
    const asked = identities.filter((_, index) => index % 1_000 === 0);
    const firstKept = asked.findIndex((identity) => finished.has(identity));
    // Of 300 that were asked for.
    expect(firstKept).toBeGreaterThanOrEqual(100);
    expect(firstKept).toBeLessThan(200);
    expect(asked.slice(firstKept).every((identity) => finished.has(identity))).toBe(true);
  });
});

describe("the identity of a token refresh", () => {
  it.each([{ refresh_id: "another" }, { ordinal: 12 }, { attempt: 2 }, { emission: 2 }])("is another with %o", (change) => {
    const refresh = tokenRefresh();
    expect(identityOf({ ...refresh, ...change })).not.toBe(identityOf(refresh));
  });
});
