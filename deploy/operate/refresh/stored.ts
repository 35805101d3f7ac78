import type { Cassandra, Row } from "../../../services/common/cassandra/session.ts";
import { readStoredAttempts } from "../../../services/common/messages/attempt-history.ts";
import type { StoredProgress, StoredRefresh, TokenFailure } from "./facts.ts";

/** The rows of a refresh; undefined where there are none. */
export async function readStored(cassandra: Pick<Cassandra, "read">, refreshId: string): Promise<StoredRefresh | undefined> {
  const [[facts], [tokens], [progress], errors] = await Promise.all([
    cassandra.read("SELECT project_id, collection_address, requested_at FROM refreshes WHERE refresh_id = ?", [refreshId]),
    cassandra.read("SELECT token_ids FROM refresh_tokens WHERE refresh_id = ?", [refreshId]),
    cassandra.read(selectProgress, [refreshId]),
    cassandra.read(selectErrors, [refreshId]),
  ]);
  return (
    facts && {
      refreshId,
      projectId: Number(facts.project_id),
      collection: String(facts.collection_address),
      requestedAt: Number(facts.requested_at),
      tokenIds: (tokens?.token_ids ?? []) as string[],
      progress: progress && progressOf(progress),
      failures: new Map(errors.map((row) => [Number(row.ordinal), failureOf(row)])),
    }
  );
}

function progressOf(row: Row): StoredProgress {
  return {
    done: row.done as Uint8Array,
    failed: row.failed as Uint8Array,
    succeeded: Number(row.succeeded_count),
    unchanged: Number(row.unchanged_count),
    failedCount: Number(row.failed_count),
    completedAt: Number(row.completed_at),
  };
}

function failureOf(row: Row): TokenFailure {
  return {
    url: String(row.url),
    statusCode: row.status_code === null ? null : Number(row.status_code),
    errorCode: String(row.error_code),
    errorDetail: row.error_detail === null ? null : String(row.error_detail),
    createdAt: Number(row.created_at),
    attempts: readStoredAttempts(row.attempts),
  };
}

const selectProgress = `SELECT done, failed, succeeded_count, unchanged_count, failed_count, completed_at
  FROM refresh_progress WHERE refresh_id = ?`;
const selectErrors = `SELECT created_at, ordinal, url, status_code, error_code, error_detail, attempts
  FROM refresh_errors WHERE refresh_id = ?`;
