import { describe, expect, it } from "vitest";
import { Away } from "../../../../services/fetcher/core/away.ts";
import { topics } from "./records.ts";

const tiers = topics.retryTiers;
const names = tiers.map(({ name }) => name);

interface Given {
  readonly waitMs: number;
  readonly msPerRecord: number;
  readonly queue?: string;
  readonly from?: string | undefined;
}

/** How many of these go where, that come back from a tier unless something else is said. */
function place(away: Away, count: number, { from = names[1], ...backlog }: Given): number[] {
  const counts = tiers.map(() => 0);
  for (let record = 0; record < count; record += 1) {
    const index = away.place({ queue: "slow", ...backlog }, from ?? "");
    counts[index] = (counts[index] ?? 0) + 1;
  }
  return counts;
}

describe("where a record goes that leaves the memory", () => {
  it.each([
    ["is busy for less than the shortest tier", 0, [1, 0, 0, 0]],
    ["is busy for 9 s", 9_999, [1, 0, 0, 0]],
    ["is busy for 50 s", 50_000, [1, 0, 0, 0]],
  ])("is the shortest tier when its host %s and nothing else is away", (_case, waitMs, expected) => {
    expect(place(new Away(tiers), 1, { waitMs, msPerRecord: 10 })).toEqual(expected);
  });

  /** So much is away that nothing but the longest tier is affordable. */
  function crowdedAway(): Away {
    const away = new Away(tiers);
    for (let record = 0; record < 100_000; record += 1) away.left("another", names[3] ?? "");
    return away;
  }

  it("is never a tier that is longer than its host has work for, with what comes back earlier", () => {
    const away = crowdedAway();
    const hundredPerSecond = { waitMs: 4_000, msPerRecord: 10, from: names[2] };
    // 4 s of work in memory: 600 records more are 10 s, 5,000 more are 60 s.
    expect(place(away, 600, hundredPerSecond)).toEqual([600, 0, 0, 0]);
    expect(place(away, 5_000, hundredPerSecond)).toEqual([0, 5_000, 0, 0]);
    expect(place(away, 100, hundredPerSecond)).toEqual([0, 0, 100, 0]);
  });

  it("is a longer tier as soon as too much would come back from the shorter ones, if its host has work for so long", () => {
    const away = new Away(tiers);
    const patient = { waitMs: 600_000, msPerRecord: 1_000, from: names[2] };
    expect(place(away, 100_000, patient)).toEqual([3_000, 12_000, 75_000, 10_000]);
    expect(place(away, 10, { ...patient, queue: "quick", waitMs: 12_000, msPerRecord: 1 })).toEqual([0, 10, 0, 0]);
    expect(place(away, 10, { ...patient, queue: "quicker", waitMs: 1_000, msPerRecord: 1 })).toEqual([10, 0, 0, 0]);
  });

  it.each([
    ["the main topic", topics.tokenRequested.name, [6_000, 24_000, 120_000, 0]],
    ["the tier of 2 s", names[0], [3_000, 147_000, 0, 0]],
    ["the tier of 10 s", names[1], [3_000, 12_000, 135_000, 0]],
    ["the tier of 60 s", names[2], [3_000, 12_000, 75_000, 60_000]],
  ])("is a long one only after a shorter one: from %s", (_from, from, expected) => {
    expect(place(new Away(tiers), 150_000, { waitMs: 600_000, msPerRecord: 1_000, from })).toEqual(expected);
  });

  it("counts what was put off for another attempt, and no longer what has come back", () => {
    const away = crowdedAway();
    for (let record = 0; record < 600; record += 1) away.left("slow", names[0] ?? "");
    expect(place(away, 1, { waitMs: 4_000, msPerRecord: 10 })).toEqual([0, 1, 0, 0]);
    for (let record = 0; record < 200; record += 1) away.returned("slow", names[0] ?? "");
    expect(place(away, 1, { waitMs: 4_000, msPerRecord: 10 })).toEqual([1, 0, 0, 0]);
  });

  it("forgets what it may not know any more, and takes nothing for back that it did not see leave", () => {
    const away = new Away(tiers);
    const patient = { waitMs: 600_000, msPerRecord: 1_000 };
    place(away, 20_000, patient);
    away.forget();
    away.returned("slow", names[0] ?? "");
    away.returned("slow", topics.tokenRequested.name);
    expect(place(away, 3_001, patient)).toEqual([3_000, 1, 0, 0]);
  });
});
