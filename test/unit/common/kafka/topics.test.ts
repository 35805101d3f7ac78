import { describe, expect, it } from "vitest";
import { loadTopics } from "../../../../services/common/kafka/topics.ts";

describe("deploy/topics.yaml", () => {
  const topics = loadTopics();
  const fetchTopics = [topics.tokenRequested, ...topics.retryTiers];

  it("gives the fetch topics equal, fixed partition counts: a project's main and retry partitions must meet on one instance", () => {
    expect(new Set(fetchTopics.map((topic) => topic.partitions)).size).toBe(1);
    expect(fetchTopics.every((topic) => topic.fixed)).toBe(true);
  });

  it("fixes the partition count of the topics whose offsets or keys are remembered", () => {
    expect(topics.tokenOutcome.fixed && topics.tokenState.fixed).toBe(true);
  });

  it("stamps every delay tier with the broker's append time: the delay counts from it", () => {
    const tiers = topics.all.filter((topic) => topic.delayMs !== null);
    expect(tiers.map((topic) => topic.timestampType)).toEqual(tiers.map(() => "LogAppendTime"));
    expect(topics.retryTiers.map((topic) => topic.delayMs)).toEqual([2_000, 10_000, 60_000, 600_000]);
    expect(topics.watchdog.delayMs).toBe(3_600_000);
  });

  it("keeps every record on its way longer than a refresh may take", () => {
    const internal = topics.all.filter((topic) => topic.visibility === "internal");
    expect(internal.every((topic) => (topic.retentionMs ?? 0) > 48 * 3_600_000)).toBe(true);
  });

  it("compacts token.state and nothing else", () => {
    const compacted = topics.all.filter((topic) => topic.cleanup === "compact");
    expect(compacted).toEqual([topics.tokenState]);
    expect(topics.tokenState.retentionMs).toBeNull();
  });
});

describe("loadTopics", () => {
  it("puts the prefix before every name", () => {
    const names = loadTopics({ prefix: "t1." }).all.map((topic) => [topic.name, `t1.${topic.baseName}`] as const);
    expect(names.every(([name, expected]) => name === expected)).toBe(true);
  });

  it("gives the named delay tiers other delays and leaves the rest", () => {
    const topics = loadTopics({ delays: "retry-2s=100, watchdog-1h=500" });
    expect(topics.retryTiers.map((topic) => topic.delayMs)).toEqual([100, 10_000, 60_000, 600_000]);
    expect(topics.watchdog.delayMs).toBe(500);
  });

  it.each([
    ["retry-3s=100", "no delay tier is called retry-3s"],
    ["retry-2s", "'retry-2s' is not a delay: write tier=milliseconds, as in retry-2s=100"],
  ])("refuses the delays %j", (delays, message) => {
    expect(() => loadTopics({ delays })).toThrow(message);
  });
});
