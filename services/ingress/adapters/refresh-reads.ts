import type { Cassandra, Row } from "../../common/cassandra/session.ts";
import { readStoredAttempts } from "../../common/messages/attempt-history.ts";
import type { ListedRefresh, ReadMonth } from "../core/refresh-list.ts";
import type { RefreshFacts, RefreshProgress, TokenError } from "../core/views.ts";

/** A place in the order of the errors: newest first, of the same instant the greater ordinal first. */
export interface ErrorPlace {
  readonly createdAt: number;
  readonly ordinal: number;
}

export async function readFacts(cassandra: Cassandra, refreshId: string): Promise<RefreshFacts | undefined> {
  const [row] = await cassandra.read(selectRefresh, [refreshId]);
  return (
    row && {
      refreshId,
      projectId: Number(row.project_id),
      collectionAddress: String(row.collection_address),
      requestedAt: Number(row.requested_at),
      total: Number(row.total),
    }
  );
}

/** The counts only: the bitmaps beside them are the aggregator's. */
export async function readProgress(cassandra: Cassandra, refreshId: string): Promise<RefreshProgress | undefined> {
  const [row] = await cassandra.read(selectProgress, [refreshId]);
  const completedAt = Number(row?.completed_at ?? 0);
  return (
    row && {
      succeeded: Number(row.succeeded_count),
      failed: Number(row.failed_count),
      completedAt: completedAt === 0 ? undefined : completedAt,
    }
  );
}

/** The next errors of a refresh behind `before`, at most `limit`. */
export async function readErrors(
  cassandra: Cassandra,
  refreshId: string,
  page: { before: ErrorPlace | undefined; limit: number },
): Promise<TokenError[]> {
  const { before, limit } = page;
  const rows =
    before === undefined
      ? await cassandra.read(`${selectErrors} LIMIT ?`, [refreshId, limit])
      : await cassandra.read(`${selectErrors} AND (created_at, ordinal) < (?, ?) LIMIT ?`, [
          refreshId,
          before.createdAt,
          before.ordinal,
          limit,
        ]);
  return rows.map(errorOf);
}

/** Reads the list of a project, or of one of its collections. */
export function createReadMonth(cassandra: Cassandra, collectionAddress: string | undefined): ReadMonth {
  const select = collectionAddress === undefined ? selectByProject : selectByCollection;
  return async (projectId, month, { before, limit }) => {
    const partition = collectionAddress === undefined ? [projectId, month] : [projectId, collectionAddress, month];
    const rows =
      before === undefined
        ? await cassandra.read(`${select} LIMIT ?`, [...partition, limit])
        : await cassandra.read(`${select} AND (created_at, refresh_id) < (?, ?) LIMIT ?`, [
            ...partition,
            before.createdAt,
            before.refreshId,
            limit,
          ]);
    return rows.map(listedOf);
  };
}

function listedOf(row: Row): ListedRefresh {
  return {
    refreshId: String(row.refresh_id),
    collectionAddress: String(row.collection_address),
    createdAt: Number(row.created_at),
  };
}

function errorOf(row: Row): TokenError {
  return {
    ordinal: Number(row.ordinal),
    tokenId: String(row.token_id),
    collectionAddress: String(row.collection_address),
    url: String(row.url),
    statusCode: row.status_code === null ? null : Number(row.status_code),
    responseBody: textOrNull(row.response_body),
    errorCode: String(row.error_code),
    errorDetail: textOrNull(row.error_detail),
    createdAt: Number(row.created_at),
    attempts: readStoredAttempts(row.attempts),
  };
}

const textOrNull = (cell: unknown): string | null => (cell === null ? null : String(cell));

const selectRefresh = "SELECT project_id, collection_address, requested_at, total FROM refreshes WHERE refresh_id = ?";
const selectProgress = "SELECT succeeded_count, failed_count, completed_at FROM refresh_progress WHERE refresh_id = ?";
const selectErrors = `SELECT created_at, ordinal, token_id, collection_address, url, status_code, response_body, error_code,
  error_detail, attempts FROM refresh_errors WHERE refresh_id = ?`;
const selectByProject = `SELECT refresh_id, created_at, collection_address FROM refreshes_by_project
  WHERE project_id = ? AND month = ?`;
const selectByCollection = `SELECT refresh_id, created_at, collection_address FROM refreshes_by_collection
  WHERE project_id = ? AND collection_address = ? AND month = ?`;
