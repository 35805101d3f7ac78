import { monthFromMicros } from "../clock.ts";
import type { RefreshRequested } from "../messages/records.ts";
import { ttlSeconds } from "./retention.ts";
import type { Cassandra } from "./session.ts";

export interface RefreshRowsOptions {
  /** Rows expire this long after the request, not after the write. */
  readonly retentionSeconds: number;
  readonly nowMs: number;
}

/**
 * Writes the facts of an accepted refresh: itself, its token ids, and its place in the two lists. Ingress writes them when it
 * accepts, the splitter again from the same record: content and write time come from the record, so the second changes
 * nothing. Rejects with CassandraError when any row could not be written; may be repeated at any time.
 */
export async function writeRefreshRows(
  cassandra: Pick<Cassandra, "write">,
  record: RefreshRequested,
  options: RefreshRowsOptions,
): Promise<void> {
  const { refresh_id: id, project_id: project, collection_address: collection, requested_at: requestedAt } = record;
  const using = [requestedAt, ttlSeconds(requestedAt, options)];
  const month = monthFromMicros(requestedAt);
  await Promise.all([
    cassandra.write(insertRefresh, [id, project, collection, requestedAt, record.token_ids.length, ...using]),
    cassandra.write(insertTokens, [id, record.token_ids, ...using]),
    cassandra.write(insertByProject, [project, month, requestedAt, id, collection, ...using]),
    cassandra.write(insertByCollection, [project, collection, month, requestedAt, id, ...using]),
  ]);
}

const insertRefresh = `INSERT INTO refreshes (refresh_id, project_id, collection_address, requested_at, total)
  VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?`;
const insertTokens = "INSERT INTO refresh_tokens (refresh_id, token_ids) VALUES (?, ?) USING TIMESTAMP ? AND TTL ?";
const insertByProject = `INSERT INTO refreshes_by_project (project_id, month, created_at, refresh_id, collection_address)
  VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?`;
const insertByCollection = `INSERT INTO refreshes_by_collection (project_id, collection_address, month, created_at, refresh_id)
  VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?`;
