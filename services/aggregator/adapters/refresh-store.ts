import { concurrently } from "../../common/cassandra/parallel.ts";
import { ttlSeconds } from "../../common/cassandra/retention.ts";
import type { Cassandra, Row, Statement } from "../../common/cassandra/session.ts";
import { storedAttempts } from "../../common/messages/attempt-history.ts";
import type { Outcome } from "../core/outcome.ts";
import type { RefreshWrite } from "../core/plan.ts";
import type { RefreshStore } from "../core/ports.ts";
import type { FailedByCode, Progress } from "../core/progress.ts";
import { groupBySize } from "../core/size-groups.ts";
import type { DurableWrite } from "./durable-write.ts";

const selectProgress =
  "SELECT total, done, failed, succeeded_count, unchanged_count, failed_count, failed_by_code, completed_at, completed_version, WRITETIME(done) AS version FROM refresh_progress WHERE refresh_id = ?";
const insertProgress =
  "INSERT INTO refresh_progress (refresh_id, total, done, failed, succeeded_count, unchanged_count, failed_count, failed_by_code, completed_at, completed_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const insertError =
  "INSERT INTO refresh_errors (refresh_id, created_at, ordinal, token_id, collection_address, url, status_code, response_body, error_code, error_detail, attempts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";

/** README, Decisions. Errors are at most 4 KiB of body and a URL, so none has to stand alone. */
const batchLimits = { maxBytes: 512 * 1024, maxCount: 1_000, aloneBytes: 512 * 1024 };
/** What an error row holds besides the texts of its record; the progress row of 1000 tokens is not more. */
const rowOverheadBytes = 512;
/** An attempt as JSON is longer than in Avro: attempt-history.ts. */
const attemptBytes = 140;
const requestsAtOnce = 32;

export interface RefreshStoreOptions {
  readonly cassandra: Pick<Cassandra, "read" | "batch">;
  readonly untilDurable: DurableWrite;
  readonly nowMs: () => number;
  /** Rows expire this long after their refresh was requested. */
  readonly retentionSeconds: number;
}

/**
 * Rows of `refresh_progress` and `refresh_errors`: one partition key, so one batch writes both as one mutation. Their timestamp is
 * the version of the newest outcome they contain: the newest state of a refresh wins, whoever writes it, and whenever.
 */
export function createRefreshStore(options: RefreshStoreOptions): RefreshStore {
  const { cassandra, untilDurable } = options;
  return {
    async load(refreshIds) {
      const found = await concurrently(requestsAtOnce, refreshIds, async (id) => {
        const [row] = await cassandra.read(selectProgress, [id]);
        return row === undefined ? [] : [[id, progressOf(row)] as const];
      });
      return new Map(found.flat());
    },
    async write(writes, signal) {
      await concurrently(requestsAtOnce, writes, async (write) => {
        const batches = batchesOf(
          write,
          ttlSeconds(write.requestedAt, { retentionSeconds: options.retentionSeconds, nowMs: options.nowMs() }),
        );
        for (const batch of batches) await untilDurable(() => cassandra.batch(batch), signal);
      });
    },
  };
}

/** One batch in the ordinary case. With more errors than fit the errors come first: who sees the progress finds them all. */
function batchesOf(write: RefreshWrite, ttl: number): Statement[][] {
  const groups = groupBySize(write.failures, errorBytes, batchLimits);
  const last = groups.pop() ?? [];
  const errors = (group: readonly Outcome[]) => group.map((outcome) => errorStatement(outcome, write.progress.version, ttl));
  return [...groups.map(errors), [...errors(last), progressStatement(write, ttl)]];
}

function errorBytes({ bytes, record }: Outcome): number {
  return bytes + rowOverheadBytes + record.attempts.length * attemptBytes;
}

/** Token not found, a time-out: a failure without status or body leaves these cells out, since null would write a tombstone. */
function errorStatement({ record }: Outcome, version: number, ttl: number): Statement {
  return {
    query: insertError,
    params: [
      record.refresh_id,
      record.created_at,
      record.ordinal,
      record.token_id,
      record.collection_address,
      record.url,
      record.status_code ?? undefined,
      record.response_body ?? undefined,
      record.error_code,
      record.error_detail ?? undefined,
      storedAttempts(record),
      version,
      ttl,
    ],
  };
}

function progressStatement({ refreshId, progress }: RefreshWrite, ttl: number): Statement {
  return {
    query: insertProgress,
    params: [
      refreshId,
      progress.total,
      progress.done,
      progress.failed,
      progress.succeededCount,
      progress.unchangedCount,
      progress.failedCount,
      progress.failedByCode,
      progress.completedAt,
      progress.completedVersion,
      progress.version,
      ttl,
    ],
  };
}

function progressOf(row: Row): Progress {
  return {
    total: Number(row.total),
    version: Number(row.version),
    done: row.done as Uint8Array,
    failed: row.failed as Uint8Array,
    succeededCount: Number(row.succeeded_count),
    unchangedCount: Number(row.unchanged_count),
    failedCount: Number(row.failed_count),
    failedByCode: (row.failed_by_code ?? {}) as FailedByCode,
    completedAt: Number(row.completed_at),
    completedVersion: Number(row.completed_version),
  };
}
