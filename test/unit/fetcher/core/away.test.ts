import { describe, expect, it } from "vitest";
import { Away } from "../../../../services/fetcher/core/away.ts";
import { topics } from "./records.ts";

const tiers = topics.retryTiers;
const names = tiers.map(({ name }) => name);

interface Given {
  readonly waitingMs: number;
  readonly msPerRecord: number;
  readonly asleepMs?: number;
  readonly queue?: string;
  readonly perSecond?: number;
}

/** How many of these go where. Whatever comes back is affordable, unless something else is said. */
function place(away: Away, count: number, given: Given): number[] {
  const { queue = "slow", perSecond = 1_000_000, asleepMs = 0, ...work } = given;
  const counts = tiers.map(() => 0);
  for (let record = 0; record < count; record += 1) {
    const index = away.place(queue, { asleepMs, ...work }, perSecond);
    counts[index] = (counts[index] ?? 0) + 1;
  }
  return counts;
}

describe("where a record goes that leaves the memory", () => {
  it.each([
    ["9 s", 9_999, [1, 0, 0, 0]],
    ["49 s", 49_999, [1, 0, 0, 0]],
    ["50 s", 50_000, [0, 1, 0, 0]],
    ["299 s", 299_999, [0, 1, 0, 0]],
    ["300 s", 300_000, [0, 0, 1, 0]],
    ["3,000 s", 3_000_000, [0, 0, 0, 1]],
  ])(
    "is the longest tier that is over before a host five times as fast had done its work of %s",
    (_work, waitingMs, expected) => {
      expect(place(new Away(tiers), 1, { waitingMs, msPerRecord: 10 })).toEqual(expected);
    },
  );

  it("is the tier that fits the sleep of its host, at once: it will not wake up any sooner", () => {
    expect(place(new Away(tiers), 100, { asleepMs: 600_000, waitingMs: 0, msPerRecord: 1 })).toEqual([0, 0, 0, 100]);
    expect(place(new Away(tiers), 100, { asleepMs: 59_000, waitingMs: 0, msPerRecord: 1 })).toEqual([0, 100, 0, 0]);
  });

  it("leaves enough in the shorter tiers for a host five times as fast to have work until the longer ones are over", () => {
    const hundredPerSecond = { waitingMs: 20_000, msPerRecord: 10 };
    expect(place(new Away(tiers), 200_000, hundredPerSecond)).toEqual([3_000, 25_000, 172_000, 0]);
  });

  it("is a longer tier when too much would come back every second, but none that its host would wait for today", () => {
    const scarce = { waitingMs: 8_000, msPerRecord: 10, perSecond: 10 };
    expect(place(new Away(tiers), 10_000, scarce)).toEqual([200, 5_000, 4_800, 0]);
  });

  it("counts what others have in a tier as coming back, too", () => {
    const away = new Away(tiers);
    for (let record = 0; record < 20; record += 1) away.left("another", names[0] ?? "");
    expect(place(away, 10, { waitingMs: 12_000, msPerRecord: 10, perSecond: 10 })).toEqual([0, 10, 0, 0]);
  });

  it("counts what was put off for another attempt, and no longer what has come back", () => {
    const away = new Away(tiers);
    const work = { waitingMs: 20_000, msPerRecord: 10 };
    for (let record = 0; record < 3_000; record += 1) away.left("slow", names[0] ?? "");
    expect(place(away, 1, work)).toEqual([0, 1, 0, 0]);
    for (let record = 0; record < 100; record += 1) away.returned("slow", names[0] ?? "");
    expect(place(away, 1, work)).toEqual([1, 0, 0, 0]);
  });
});

describe("a queue of which records are away", () => {
  it("has overflowed until they are all back, and not for what was only put off", () => {
    const away = new Away(tiers);
    away.left("retried", names[0] ?? "");
    place(away, 2, { waitingMs: 0, msPerRecord: 1 });
    expect([away.overflowed("slow"), away.overflowed("retried"), away.overflowed("unknown")]).toEqual([true, false, false]);
    away.returned("slow", names[0] ?? "");
    expect(away.overflowed("slow")).toBe(true);
    away.returned("slow", names[0] ?? "");
    expect(away.overflowed("slow")).toBe(false);
  });

  it("is forgotten with what may not be known any more, and nothing is taken for back that was not seen to leave", () => {
    const away = new Away(tiers);
    place(away, 20, { waitingMs: 0, msPerRecord: 1, perSecond: 10 });
    away.forget();
    away.returned("slow", names[0] ?? "");
    away.returned("slow", topics.tokenRequested.name);
    expect(away.overflowed("slow")).toBe(false);
    expect(place(away, 21, { waitingMs: 50_000, msPerRecord: 1, perSecond: 10 })).toEqual([0, 21, 0, 0]);
  });
});
