import { LRUCache } from "lru-cache";
import { type AddressBlock, addressBlocks } from "../../common/http/address-guard.ts";
import type { TopicDefinition } from "../../common/kafka/topics.ts";
import type { Logger } from "../../common/logging/logger.ts";
import type { Metrics } from "../../common/metrics/metrics.ts";
import type { Conclusion } from "../core/attempt-rules.ts";
import { type Move, moveCauses } from "../core/overflow.ts";
import type { PipelineReport } from "../core/ports.ts";
import { type CallResult, errorDetails } from "../core/results.ts";
import type { Work } from "../core/work.ts";

export interface ReportParts {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tiers: readonly TopicDefinition[];
  readonly maxAttempts: number;
}

/** A blocked call is worth a line, a thousand of one project are not. So is a queue that overflows. */
const linePerMs = 60_000;
const toldCount = 1_000;

/** Metrics, and one line per attempt, at debug: at several thousand a second the metrics and the outcomes tell the story. */
export function createReports({ logger, metrics, tiers, maxAttempts }: ReportParts): PipelineReport {
  const durations = metrics.duration("metadata_fetch_duration_seconds", "Calls to Metadata APIs, by what answered.", {
    status_class: ["2xx", "3xx", "4xx", "5xx", "other", "none"],
  });
  const results = metrics.counter("metadata_fetch_results_total", "Calls to Metadata APIs, by how they ended.", {
    result: ["succeeded", ...errorDetails],
  });
  const blocked = metrics.counter("fetch_blocked_total", "Calls that were refused for where they would have led.", {
    reason: [...addressBlocks, "url"],
  });
  const retries = metrics.counter("retry_scheduled_total", "Attempts that were put off, by delay tier.", {
    tier: tiers.map(tierName),
  });
  const dwell = metrics.duration("host_queue_dwell_seconds", "From taking a record over to starting its call.", {});
  const duplicates = metrics.counter("fetch_duplicates_total", "Records that came again and were not called again.", {});
  const moved = metrics.counter("overflow_records_total", "Records that went to a delay tier uncalled, by why.", {
    tier: tiers.map(tierName),
    cause: moveCauses,
  });
  const toldBlocked = new LRUCache<number, true>({ max: toldCount, ttl: linePerMs });
  const toldMoved = new LRUCache<string, true>({ max: toldCount, ttl: linePerMs });

  const reportBlock = ({ refresh }: Work, block: AddressBlock | undefined): void => {
    blocked.inc({ reason: block ?? "url" });
    if (toldBlocked.has(refresh.project_id)) return;
    toldBlocked.set(refresh.project_id, true);
    logger.warn(
      { project_id: refresh.project_id, collection_address: refresh.collection_address, reason: block },
      "fetch.blocked",
    );
  };

  const tellMove = ({ cause, tier, works }: Move): void => {
    const [first] = works;
    if (first === undefined || toldMoved.has(first.queue)) return;
    toldMoved.set(first.queue, true);
    logger.info(
      { project_id: first.refresh.project_id, cause, records: works.length, wait_ms: tier.delayMs },
      "fetch.overflowed",
    );
  };

  return {
    started: (_work, waitedMs) => dwell.observe(waitedMs / 1_000),
    duplicate: () => duplicates.inc(),
    moved(move) {
      moved.inc({ tier: tierName(move.tier), cause: move.cause }, move.works.length);
      tellMove(move);
    },
    attempted(work, result, conclusion) {
      results.inc({ result: result.ok ? "succeeded" : result.detail });
      durations.observe({ status_class: statusClass(result) }, result.durationMs / 1_000);
      if (conclusion.kind === "retry") retries.inc({ tier: tierName(conclusion.tier) });
      if (!result.ok && (result.detail === "blocked_address" || result.detail === "invalid_url")) reportBlock(work, result.block);
      if (logger.isLevelEnabled("debug")) logger.debug(attemptLine(work, result, conclusion, maxAttempts), "fetch.attempted");
    },
  };
}

function attemptLine({ refresh }: Work, result: CallResult, conclusion: Conclusion, maxAttempts: number) {
  return {
    refresh_id: refresh.refresh_id,
    ordinal: refresh.ordinal,
    project_id: refresh.project_id,
    attempt: refresh.attempt,
    max_attempts: maxAttempts,
    result: result.ok ? "succeeded" : result.detail,
    status: result.ok ? 200 : result.status,
    duration_ms: Math.round(result.durationMs),
    body_bytes: result.bodyBytes,
    ...(conclusion.kind === "retry" ? { wait_ms: conclusion.tier.delayMs } : {}),
  };
}

function statusClass(result: CallResult): string {
  const status = result.ok ? 200 : result.status;
  if (status === null) return "none";
  return status < 600 ? `${Math.floor(status / 100)}xx` : "other";
}

/** `retry-2s` of `internal.metadata.token.retry-2s.v1`. */
function tierName({ baseName }: TopicDefinition): string {
  return /\.(retry-[^.]+)\./.exec(baseName)?.[1] ?? baseName;
}
