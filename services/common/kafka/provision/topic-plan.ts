import type { TopicDefinition } from "../topics.ts";

/** A topic as the cluster has it. */
export interface ExistingTopic {
  readonly partitions: number;
  readonly replication: number;
  /** What holds for the topic, whoever set it. */
  readonly config: Readonly<Record<string, string>>;
  /** What was set on the topic itself. */
  readonly overrides: Readonly<Record<string, string>>;
}

export interface TopicPlan {
  readonly topic: TopicDefinition;
  /** Set when the topic is missing. */
  readonly create?: { readonly replication: number; readonly config: Readonly<Record<string, string>> };
  /** Set when partitions are to be added: the new count. */
  readonly growTo?: number;
  /** The whole set of overrides after the change: the broker takes what is missing as removed. */
  readonly alterTo?: Readonly<Record<string, string>>;
  /** What changes, or differs and is left as it is: for the report. */
  readonly notes: readonly string[];
  /** What forbids to go on. */
  readonly refusal?: string;
}

/** What has to be done so that the topic is as in deploy/topics.yaml. `replicationFactor` is the highest the cluster can give. */
export function planTopic(topic: TopicDefinition, existing: ExistingTopic | undefined, replicationFactor: number): TopicPlan {
  if (existing === undefined) {
    const replication = Math.min(topic.replication, replicationFactor);
    return { topic, create: { replication, config: wantedConfig(topic, replication) }, notes: [sizeOf(topic, replication)] };
  }
  const refusal = partitionRefusal(topic, existing);
  if (refusal !== undefined) return { topic, notes: [], refusal };
  const wanted = wantedConfig(topic, existing.replication);
  const changed = Object.entries(wanted).filter(([name, value]) => existing.config[name] !== value);
  const grows = existing.partitions < topic.partitions;
  return {
    topic,
    ...(grows ? { growTo: topic.partitions } : {}),
    ...(changed.length > 0 ? { alterTo: { ...existing.overrides, ...wanted } } : {}),
    notes: [
      ...(grows ? [`partitions ${existing.partitions} → ${topic.partitions}`] : []),
      ...changed.map(([name, value]) => `${name} ${existing.config[name] ?? "unset"} → ${value}`),
      ...leftAsItIs(topic, existing, replicationFactor),
    ],
  };
}

/** Two of three replicas must have a record before it is acknowledged; with fewer replicas one lost broker would stop everything. */
function wantedConfig(topic: TopicDefinition, replication: number): Record<string, string> {
  return {
    "cleanup.policy": topic.cleanup,
    ...(topic.retentionMs === null ? {} : { "retention.ms": String(topic.retentionMs) }),
    "max.message.bytes": String(topic.maxMessageBytes),
    "message.timestamp.type": topic.timestampType,
    "min.insync.replicas": replication >= 3 ? "2" : "1",
  };
}

function partitionRefusal(topic: TopicDefinition, existing: ExistingTopic): string | undefined {
  if (!topic.fixed || existing.partitions === topic.partitions) return undefined;
  return (
    `${topic.name} has ${existing.partitions} partitions and deploy/topics.yaml says ${topic.partitions}: the count is fixed, ` +
    "because keys would move to other partitions. Growing means a new generation of the topic"
  );
}

function leftAsItIs(topic: TopicDefinition, existing: ExistingTopic, replicationFactor: number): string[] {
  const replication = Math.min(topic.replication, replicationFactor);
  return [
    ...(existing.partitions > topic.partitions ? [`kept: ${existing.partitions} partitions, ${topic.partitions} wanted`] : []),
    ...(existing.replication === replication ? [] : [`kept: replication ${existing.replication}, ${replication} wanted`]),
  ];
}

function sizeOf(topic: TopicDefinition, replication: number): string {
  return `${topic.partitions} partitions, replication ${replication}`;
}
