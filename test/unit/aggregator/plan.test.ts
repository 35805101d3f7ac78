import { describe, expect, it } from "vitest";
import { checkOutcome } from "../../../services/aggregator/core/outcome.ts";
import { type Known, planBatch } from "../../../services/aggregator/core/plan.ts";
import { noProgress } from "../../../services/aggregator/core/progress.ts";
import type { TokenOutcome } from "../../../services/common/messages/records.ts";
import { collection, failure, hashOf, outcomeRecord, refreshId, startOfTime, success } from "./outcomes.ts";

const version = (offset: number) => 2 ** 40 + offset;
const nothing: Known = { heads: new Map(), progress: new Map() };

function plan(values: readonly (Partial<TokenOutcome> & { offset?: number })[], known: Known = nothing) {
  const records = values.map(({ offset, ...value }, index) => outcomeRecord(offset ?? index, value));
  return planBatch(
    records.map((record) => checkOutcome(record, 1)),
    known,
  );
}

function stored(offset: number, content: string, previous = ""): Known {
  const head = { version: version(offset), contentHash: hashOf(content), previousHash: previous && hashOf(previous) };
  return { heads: new Map([[`${collection}:1`, head]]), progress: new Map() };
}

const first = { refresh_id: refreshId(1) };
const second = { refresh_id: refreshId(2) };
const third = { refresh_id: refreshId(3) };

describe("what a batch does", () => {
  it("cuts before the second outcome that touches a token: A, B, A in one poll are three steps that end with A", () => {
    const { segments } = plan([
      { ...first, ...success("A") },
      { ...second, ...success("B") },
      { ...third, ...success("A") },
    ]);
    expect(segments.map(({ states }) => states.map(({ metadata }) => metadata))).toEqual([["A"], ["B"], ["A"]]);
  });

  it("does not cut for failures and repeats, which touch no row", () => {
    const { segments } = plan([
      { ...first, ...success("A") },
      { ...second, ...failure() },
      { ...first, ...success("B") },
    ]);
    expect(segments).toHaveLength(1);
  });

  it.each([
    ["a first content", nothing, 5, "A", { states: 1, content: true, unchanged: 0 }],
    ["another content", stored(3, "B"), 5, "A", { states: 1, content: true, unchanged: 0 }],
    ["the stored content", stored(3, "A"), 5, "A", { states: 0, content: false, unchanged: 1 }],
    ["its own content, a change, read back on replay", stored(5, "A", "B"), 5, "A", { states: 0, content: true, unchanged: 0 }],
    ["its own content, the first, read back on replay", stored(5, "A"), 5, "A", { states: 0, content: true, unchanged: 0 }],
  ])("publishes and counts %s", (_, known, offset, content, expected) => {
    const { segments, after } = plan([{ offset, ...first, ...success(content) }], known);
    const [segment] = segments;
    expect(segment?.states).toHaveLength(expected.states);
    expect(segment?.tokens.map((write) => write.content !== null)).toEqual([expected.content]);
    expect(after.progress.get(refreshId(1))).toMatchObject({ succeededCount: 1, unchangedCount: expected.unchanged });
  });

  it("publishes and writes nothing below the stored version, counts the outcome, and says so", () => {
    const { segments, overtaken, after } = plan([{ offset: 5, ...first, ...success("A") }], stored(9, "B"));
    expect(segments[0]).toMatchObject({ states: [], tokens: [] });
    expect(overtaken).toHaveLength(1);
    expect(after.progress.get(refreshId(1))).toMatchObject({ succeededCount: 1, completedVersion: version(5) });
    expect(after.heads.get(`${collection}:1`)).toMatchObject({ version: version(9) });
  });

  it("lets the first outcome of an ordinal win, for count and content alike", () => {
    const { segments, after } = plan([
      { ...first, total: 2, ...failure() },
      { ...first, total: 2, ...success("B") },
    ]);
    expect(segments).toHaveLength(1);
    expect(segments[0]).toMatchObject({ states: [], ignored: { repeated: 1, after_completion: 0 } });
    expect(after.progress.get(refreshId(1))).toMatchObject({ failedCount: 1, succeededCount: 0, completedVersion: 0 });
  });

  it("completes with the outcome that leaves nothing pending, never before the request", () => {
    const { segments } = plan([
      { ...first, total: 2, ordinal: 1, ...failure("token_not_found"), created_at: startOfTime + 9 },
      { ...first, total: 2, ordinal: 0, ...success("A"), created_at: startOfTime - 5 },
    ]);
    expect(segments[0]?.completions).toEqual([
      {
        refresh_id: refreshId(1),
        project_id: 7,
        collection_address: collection,
        requested_at: startOfTime,
        completed_at: startOfTime,
        total: 2,
        succeeded: 1,
        unchanged: 0,
        failed: 1,
        failed_by_code: { token_not_found: 1 },
      },
    ]);
  });

  it("says a completion again for a record up to the one that completed it, once a batch, and nothing for one above", () => {
    const done = plan([{ offset: 5, ...first, ...success("A") }]);
    const again = plan(
      [
        { offset: 5, ...first, ...success("A") },
        { offset: 5, ...first, ...success("A") },
        { offset: 6, ...first, ...success("C") },
      ],
      done.after,
    );
    expect(again.segments).toHaveLength(1);
    expect(again.segments[0]).toMatchObject({ states: [], tokens: [], refreshes: [], completed: [] });
    expect(again.segments[0]?.completions).toEqual(done.segments[0]?.completions);
    expect(again.segments[0]?.ignored).toEqual({ repeated: 2, after_completion: 1 });
    const above = plan([{ offset: 6, ...first, ...success("C") }], done.after);
    expect(above.segments[0]?.completions).toEqual([]);
  });

  it("writes a refresh with the version of its newest outcome that counted, and with all its failures", () => {
    const { segments } = plan([
      { ...first, total: 3, ordinal: 0, ...failure() },
      { ...first, total: 3, ordinal: 2, ...failure() },
      { ...first, total: 3, ordinal: 0, ...success("late") },
      { ...second, ...failure() },
    ]);
    const written = segments[0]?.refreshes.map((write) => [write.refreshId, write.progress.version, write.failures.length]);
    expect(written).toEqual([
      [refreshId(1), version(1), 2],
      [refreshId(2), version(3), 1],
    ]);
  });

  it("finds another log: a version with another content, or progress that is newer than an outcome it lacks", () => {
    expect(plan([{ offset: 5, ...first, ...success("A") }], stored(5, "B")).contradictions).toEqual([
      expect.stringContaining("another content"),
    ]);
    const progress = new Map([[refreshId(1), { ...noProgress(2), version: version(6) }]]);
    const lacking = plan([{ offset: 5, ...first, total: 2, ...failure() }], { heads: new Map(), progress });
    expect(lacking.contradictions).toEqual([expect.stringContaining("not this one")]);
    expect(plan([{ offset: 7, ...first, total: 2, ...failure() }], { heads: new Map(), progress }).contradictions).toEqual([]);
  });

  it("takes an outcome for poison whose total contradicts the refresh, stored or in the same batch", () => {
    const known: Known = { heads: new Map(), progress: new Map([[refreshId(1), noProgress(3)]]) };
    expect(() => plan([{ ...first, total: 2 }], known)).toThrow(/total of 2 in a refresh of 3/);
    const contradicting = [
      { ...first, total: 3 },
      { ...first, total: 4, ordinal: 3 },
    ];
    expect(() => plan(contradicting)).toThrow(/total of 4 in a refresh of 3/);
  });
});
