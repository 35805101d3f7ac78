import type { Logger } from "../../common/logging/logger.ts";
import { errorCodes } from "../../common/messages/records.ts";
import type { Metrics } from "../../common/metrics/metrics.ts";
import type { Segment } from "../core/plan.ts";
import type { Telemetry } from "../core/ports.ts";

/** Counts and log lines of what has become durable. A replay of a batch that had ended early is counted where it ends. */
export function createTelemetry(logger: Logger, metrics: Metrics): Telemetry {
  const tokens = metrics.counter("refresh_tokens_total", "Tokens whose outcome was counted.", {
    outcome: ["succeeded", "failed"],
    error_code: ["none", ...errorCodes],
  });
  const durations = metrics.duration(
    "refresh_duration_seconds",
    "From the request of a refresh to its completion.",
    {},
    "refresh",
  );
  const published = metrics.counter("token_state_published_total", "Records of token.state: new content.", {});
  const ignored = metrics.counter("outcomes_ignored_total", "Outcomes of tokens that had one already.", {
    reason: ["repeated", "after_completion"],
  });
  const batches = metrics.duration("aggregator_batch_duration_seconds", "From the first read of a batch to its last effect.", {});
  const cuts = metrics.counter("aggregator_batch_cuts_total", "Batches cut before a second outcome of one token.", {});
  const conflicts = metrics.counter("version_conflicts_total", "Outcomes counted while a newer version was stored.", {});
  const fences = metrics.counter("partition_fenced_total", "Partitions that stand still: their topic was re-created.", {});
  return {
    segmentApplied(segment) {
      countTokens(segment, (outcome, error_code, value) => tokens.inc({ outcome, error_code }, value));
      published.inc({}, segment.states.length);
      ignored.inc({ reason: "repeated" }, segment.ignored.repeated);
      ignored.inc({ reason: "after_completion" }, segment.ignored.after_completion);
      for (const completion of segment.completed) {
        durations.observe({}, (completion.completed_at - completion.requested_at) / 1_000_000);
        const { refresh_id, total, succeeded, unchanged, failed } = completion;
        logger.info({ refresh_id, total, succeeded, unchanged, failed }, "refresh.completed");
      }
    },
    batchStarted() {
      const observe = batches.startTimer();
      return ({ segments, overtaken }) => {
        observe();
        cuts.inc({}, segments.length - 1);
        conflicts.inc({}, overtaken.length);
        for (const { record, version } of overtaken.slice(0, 1)) {
          logger.warn({ refresh_id: record.refresh_id, version, count: overtaken.length }, "aggregator.overtaken");
        }
      };
    },
    fenced({ topic, partition }, reason) {
      fences.inc({});
      logger.fatal({ topic, partition, reason }, "partition.fenced");
    },
  };
}

type Tally = (outcome: "succeeded" | "failed", errorCode: string, value: number) => void;

function countTokens({ succeededCount, refreshes }: Segment, tally: Tally): void {
  tally("succeeded", "none", succeededCount);
  for (const { failures } of refreshes) {
    for (const { result } of failures) if (!result.ok) tally("failed", result.errorCode, 1);
  }
}
