import { describe, expect, it } from "vitest";
import { type Fetched, Gathering } from "../../../../../services/common/kafka/consume/gathering.ts";

/** What a fetch of a busy consumer brought. */
function fetchedAt(answeredAtMs: number, differently: Partial<Fetched> = {}): Fetched {
  return { answeredAtMs, recordCount: 64, partitionCount: 2, moreIsThere: false, ...differently };
}

/** Fetches one after the other, and how patient the next is, asked 500 ms after the last was answered. */
function patienceAfter(...fetches: Fetched[]) {
  const gathering = new Gathering({ partitionBytes: 512, answerBytes: 2_048 });
  for (const fetched of fetches) gathering.note(fetched);
  return gathering.patience((fetches.at(-1)?.answeredAtMs ?? 0) + 500);
}

describe("a fetch", () => {
  it.each<[string, Fetched[]]>([
    ["the first of all", []],
    ["behind an empty answer", [fetchedAt(0), fetchedAt(100, { recordCount: 0 })]],
    ["behind a token alone", [fetchedAt(0), fetchedAt(100, { recordCount: 1 })]],
    ["behind a small refresh", [fetchedAt(0), fetchedAt(100, { recordCount: 63 })]],
    ["of what a partition still has", [fetchedAt(0), fetchedAt(100, { moreIsThere: true })]],
  ])("takes the first record that comes: %s", (_, fetches) => {
    expect(patienceAfter(...fetches)).toBeUndefined();
  });

  it.each([
    [2, 1_024],
    [9, 2_048],
  ])("of a busy consumer waits for the share of each of %i partitions that had records, or a full answer", (count, bytes) => {
    expect(patienceAfter(fetchedAt(0, { partitionCount: count }))?.minBytes).toBe(bytes);
  });
});

describe("the wait for more", () => {
  it.each([
    ["is a tenth of the busy stretch, what handlers take included", [fetchedAt(0)], 50],
    ["grows with it", [fetchedAt(0), fetchedAt(200)], 70],
    ["ends at 100 ms", [fetchedAt(0), fetchedAt(400), fetchedAt(900)], 100],
    ["begins anew behind a pause", [fetchedAt(0), fetchedAt(950, { recordCount: 0 }), fetchedAt(1_000)], 50],
  ])("%s", (_, fetches, maxWaitMs) => {
    expect(patienceAfter(...fetches)?.maxWaitMs).toBe(maxWaitMs);
  });

  it("is none at the beginning of a stretch, when it would be shorter than a millisecond", () => {
    const gathering = new Gathering({ partitionBytes: 512, answerBytes: 2_048 });
    gathering.note(fetchedAt(0));
    expect(gathering.patience(9)).toBeUndefined();
  });
});
