import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { z } from "zod";

/** One topic of `deploy/topics.yaml`, ready to be created. Sizes in bytes, times in milliseconds. */
export interface TopicDefinition {
  /** With the environment's prefix. */
  readonly name: string;
  /** As in `deploy/topics.yaml`. */
  readonly baseName: string;
  readonly visibility: "public" | "internal";
  readonly key: string;
  readonly partitions: number;
  /** Provisioning never changes a fixed count: keys would move. */
  readonly fixed: boolean;
  readonly replication: number;
  readonly generation: number;
  readonly cleanup: "delete" | "compact";
  /** null for a compacted topic. */
  readonly retentionMs: number | null;
  readonly maxMessageBytes: number;
  readonly timestampType: "CreateTime" | "LogAppendTime";
  /** File name in schemas/avro without its ending; null for raw bytes (dead letters). */
  readonly schema: string | null;
  /** Set on a delay tier: what every record of it waits, from its append time. */
  readonly delayMs: number | null;
}

/** Every topic by its role. */
export interface Topics {
  readonly refreshRequested: TopicDefinition;
  readonly tokenRequested: TopicDefinition;
  /** The fetcher's delay tiers, shortest first. */
  readonly retryTiers: readonly TopicDefinition[];
  readonly tokenOutcome: TopicDefinition;
  readonly watchdog: TopicDefinition;
  /** Its acknowledgements show the broker's clock: services/common/retry/clock-probe.ts. */
  readonly clock: TopicDefinition;
  readonly deadLetter: TopicDefinition;
  readonly tokenState: TopicDefinition;
  readonly refreshCompleted: TopicDefinition;
  readonly all: readonly TopicDefinition[];
}

const entrySchema = z.strictObject({
  key: z.string(),
  partitions: z.int().min(1),
  growth: z.literal("fixed").optional(),
  replication: z.int().min(1).default(3),
  generation: z.int().min(1).default(1),
  cleanup: z.enum(["delete", "compact"]).default("delete"),
  retention_ms: z.int().min(1).optional(),
  max_message_bytes: z.int().min(1),
  timestamp_type: z.enum(["CreateTime", "LogAppendTime"]),
  schema: z.string().optional(),
  delay_ms: z.int().min(1).optional(),
});
const fileSchema = z.strictObject({
  topics: z.record(z.string().regex(/^(public|internal)\.metadata\.[a-z0-9.-]+\.v\d+$/), entrySchema),
});

const topicsFile = new URL("../../../deploy/topics.yaml", import.meta.url);

/**
 * Reads `deploy/topics.yaml`. `prefix` is put before every name; `delays` (`retry-2s=100,watchdog-1h=500`) gives delay tiers
 * another delay in milliseconds. Throws on a file that does not follow its own schema, and on a delay for no tier.
 */
export function loadTopics(options: { prefix?: string; delays?: string } = {}): Topics {
  const file = fileSchema.parse(parse(readFileSync(topicsFile, "utf8"), { merge: true }));
  const delays = parseDelays(options.delays ?? "");
  const all = Object.entries(file.topics).map(([baseName, entry]) => definition(baseName, entry, options.prefix ?? "", delays));
  if (delays.size > 0) throw new Error(`no delay tier is called ${[...delays.keys()].join(", ")}`);
  return byRole(all);
}

function definition(
  baseName: string,
  entry: z.output<typeof entrySchema>,
  prefix: string,
  delays: Map<string, number>,
): TopicDefinition {
  const tier = /\.([a-z]+-\d+[smh])\.v\d+$/.exec(baseName)?.[1] ?? "";
  const delayMs = entry.delay_ms === undefined ? null : (delays.get(tier) ?? entry.delay_ms);
  if (entry.delay_ms !== undefined) delays.delete(tier);
  return {
    name: prefix + baseName,
    baseName,
    visibility: baseName.startsWith("public.") ? "public" : "internal",
    key: entry.key,
    partitions: entry.partitions,
    fixed: entry.growth === "fixed",
    replication: entry.replication,
    generation: entry.generation,
    cleanup: entry.cleanup,
    retentionMs: entry.retention_ms ?? null,
    maxMessageBytes: entry.max_message_bytes,
    timestampType: entry.timestamp_type,
    schema: entry.schema ?? null,
    delayMs,
  };
}

function parseDelays(text: string): Map<string, number> {
  const pairs = text.split(",").filter((pair) => pair !== "");
  return new Map(
    pairs.map((pair) => {
      const [, tier, delay] = /^([a-z]+-\d+[smh])=(\d+)$/.exec(pair.trim()) ?? [];
      if (tier === undefined) throw new Error(`'${pair}' is not a delay: write tier=milliseconds, as in retry-2s=100`);
      return [tier, Number(delay)];
    }),
  );
}

function byRole(all: readonly TopicDefinition[]): Topics {
  const find = (role: string): TopicDefinition => {
    const found = all.find((topic) => topic.baseName.includes(role));
    if (found === undefined) throw new Error(`deploy/topics.yaml has no topic ${role}`);
    return found;
  };
  const retryTiers = all
    .filter((topic) => topic.baseName.includes(".token.retry-"))
    .sort((a, b) => (a.delayMs ?? 0) - (b.delayMs ?? 0));
  return {
    refreshRequested: find(".refresh.requested."),
    tokenRequested: find(".token.requested."),
    retryTiers,
    tokenOutcome: find(".token.outcome."),
    watchdog: find(".refresh.watchdog-"),
    clock: find(".clock."),
    deadLetter: find(".dead-letter."),
    tokenState: find(".token.state."),
    refreshCompleted: find(".refresh.completed."),
    all,
  };
}
