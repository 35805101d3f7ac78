import { describe, expect, it } from "vitest";
import { type ExistingTopic, planTopic } from "../../../../../services/common/kafka/provision/topic-plan.ts";
import { loadTopics, type TopicDefinition } from "../../../../../services/common/kafka/topics.ts";

const { refreshRequested: growing, tokenOutcome: fixed, tokenState: compacted } = loadTopics();

/** As the topic stands when it was created by this release. */
function existing(topic: TopicDefinition, changes: Partial<ExistingTopic> = {}): ExistingTopic {
  const config = planTopic(topic, undefined, 3).create?.config ?? {};
  return {
    partitions: topic.partitions,
    replication: 3,
    config: { ...config, "retention.bytes": "-1" },
    overrides: config,
    ...changes,
  };
}

describe("a missing topic", () => {
  it("is created with every setting of deploy/topics.yaml", () => {
    expect(planTopic(fixed, undefined, 3).create).toEqual({
      replication: 3,
      config: {
        "cleanup.policy": "delete",
        "retention.ms": "604800000",
        "max.message.bytes": "2097152",
        "message.timestamp.type": "LogAppendTime",
        "min.insync.replicas": "2",
      },
    });
  });

  it("keeps a compacted topic's records for ever", () => {
    const config = planTopic(compacted, undefined, 3).create?.config;
    expect(config).toMatchObject({ "cleanup.policy": "compact" });
    expect(config).not.toHaveProperty("retention.ms");
  });

  it.each([
    [1, "1"],
    [2, "1"],
    [3, "2"],
    [5, "2"],
  ])("asks for a second replica of each record only where three brokers share them (%i brokers)", (brokers, minimum) => {
    const { create } = planTopic(fixed, undefined, brokers);
    expect(create).toMatchObject({ replication: Math.min(brokers, 3), config: { "min.insync.replicas": minimum } });
  });
});

describe("an existing topic", () => {
  it.each([growing, fixed, compacted])("is left alone when it is as it should be: $baseName", (topic) => {
    expect(planTopic(topic, existing(topic), 3)).toEqual({ topic, notes: [] });
  });

  it("gets our settings back, and keeps those that somebody else has set", () => {
    const base = existing(fixed);
    const config = { ...base.config, "retention.ms": "1000", "segment.ms": "60000" };
    const plan = planTopic(fixed, { ...base, config, overrides: { "retention.ms": "1000", "segment.ms": "60000" } }, 3);
    expect(plan.alterTo).toEqual({ ...base.overrides, "segment.ms": "60000" });
    expect(plan.notes).toEqual(["retention.ms 1000 → 604800000"]);
  });

  it("is asked for no more replicas of a record than it has", () => {
    const base = existing(fixed, { replication: 1 });
    const plan = planTopic(fixed, base, 3);
    expect(plan.alterTo).toMatchObject({ "min.insync.replicas": "1" });
    expect(plan.notes).toContain("kept: replication 1, 3 wanted");
  });

  it("grows when its count is not fixed", () => {
    const plan = planTopic(growing, existing(growing, { partitions: 2 }), 3);
    expect(plan).toMatchObject({ growTo: growing.partitions, notes: [`partitions 2 → ${growing.partitions}`] });
  });

  it("keeps partitions above the wanted count, and says so", () => {
    const plan = planTopic(growing, existing(growing, { partitions: 20 }), 3);
    expect(plan).toEqual({ topic: growing, notes: [`kept: 20 partitions, ${growing.partitions} wanted`] });
  });

  it.each([6, 24])("is refused when its count is fixed and it has %i partitions", (partitions) => {
    const plan = planTopic(fixed, existing(fixed, { partitions, config: {} }), 3);
    expect(plan.refusal).toBe(
      `${fixed.name} has ${partitions} partitions and deploy/topics.yaml says 12: the count is fixed, because keys would move to ` +
        "other partitions. Growing means a new generation of the topic",
    );
    expect([plan.growTo, plan.alterTo, plan.create]).toEqual([undefined, undefined, undefined]);
  });
});
