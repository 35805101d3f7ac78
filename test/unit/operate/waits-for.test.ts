import { describe, expect, it } from "vitest";
import type { PendingCheck, StageLag } from "../../../deploy/operate/refresh/facts.ts";
import { type WaitFacts, waitsFor, waitsWithoutRows } from "../../../deploy/operate/refresh/waits-for.ts";
import { refreshOf } from "../splitter/refreshes.ts";

const stage = (name: StageLag["stage"], lag: number, delayMs: number | null = null): StageLag => ({
  stage: name,
  topic: "internal.metadata.some.topic.v1",
  partition: 4,
  delayMs,
  lag,
});
const idle = [stage("splitter", 0), stage("fetcher", 0), stage("delay tier", 0, 2_000), stage("aggregator", 0)];
const check = (emission: number): PendingCheck => ({
  watchdog: { check: 3, emission, refresh: refreshOf() },
  dueMs: Date.UTC(2026, 0, 31, 12),
});
const facts = (change: Partial<WaitFacts>): WaitFacts => ({
  pendingCount: 2,
  untouched: false,
  lags: idle,
  check: check(1),
  letters: [],
  ...change,
});

describe("a refresh waits for", () => {
  it.each<[string, Partial<WaitFacts>, string]>([
    ["nothing when it is complete", { pendingCount: 0, check: undefined }, "Nothing"],
    [
      "the splitter before it is split",
      { untouched: true, lags: [stage("splitter", 7)] },
      "The splitter, which has not finished 7",
    ],
    ["the fetcher", { lags: [stage("fetcher", 1)] }, "The fetcher, which has not finished 1 record of partition 4"],
    ["a tier's delay", { lags: [stage("delay tier", 12, 600_000)] }, "A delay of 600 s: 12 records"],
    ["a short tier's delay", { lags: [stage("delay tier", 12, 100)] }, "A delay of 100 ms"],
    ["the aggregator", { lags: [stage("aggregator", 3)] }, "The aggregator, which has not counted 3 records"],
    ["the watchdog when all is lost", {}, "The watchdog: nothing of it is on its way, so 2 tokens are lost"],
    ["an operator", { letters: [{ id: "1/7", topic: "t", ofRefresh: false }] }, "An operator: dead letter 1/7 from t is of its"],
  ])("%s", (_what, change, beginning) => {
    expect(waitsFor(facts(change))[0]).toMatch(new RegExp(`^${beginning}`));
  });

  it("no splitter when a token of it has been counted: the records there are of others", () => {
    const sentences = waitsFor(facts({ lags: [stage("splitter", 7), stage("aggregator", 1)] }));
    expect(sentences.filter((sentence) => sentence.includes("splitter"))).toEqual([]);
  });

  it("every stage that lags, in the order of its way, then the watchdog", () => {
    const lags = [stage("splitter", 1), stage("fetcher", 1), stage("delay tier", 1, 2_000), stage("aggregator", 1)];
    const beginnings = waitsFor(facts({ untouched: true, lags })).map((sentence) => sentence.split(" ").slice(0, 2).join(" "));
    expect(beginnings).toEqual(["The splitter,", "The fetcher,", "A delay", "The aggregator,", "Check 3", "At the"]);
  });

  it("a check with its time, and what has been handed out so far", () => {
    expect(waitsFor(facts({ check: check(2) }))).toContain(
      "Check 3 of the watchdog is due at 2026-01-31T12:00:00Z; its tokens were handed out 2 times so far.",
    );
  });

  it("nobody, and says so, where no check is found", () => {
    expect(waitsFor(facts({ check: undefined })).at(-1)).toMatch(/^No check of the watchdog is found/);
  });
});

it("without rows only the splitter and the dead letters can be named", () => {
  expect(waitsWithoutRows({ lags: [stage("splitter", 0)], letters: [] })[0]).toMatch(/^Nothing is known/);
  expect(waitsWithoutRows({ lags: [stage("splitter", 2)], letters: [] })).toEqual([expect.stringMatching(/^The splitter/)]);
});
