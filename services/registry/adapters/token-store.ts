import { concurrently } from "../../common/cassandra/parallel.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import { bucketOf } from "../../common/messages/token-id.ts";
import { groupByBucket, type Token } from "../core/tokens.ts";

/** Partitions written at a time: leaves room for the other requests. */
const bucketsAtATime = 32;

/**
 * Writes registered_at alone, by UPDATE: no row marker, and not one of the cells that a refresh writes. Repeatable; a token's
 * registered_at is the time of its last registration. Returns how many different tokens that were.
 */
export async function registerTokens(
  cassandra: Cassandra,
  collectionAddress: string,
  registration: { readonly tokenIds: readonly string[]; readonly registeredAt: number },
): Promise<number> {
  const query = "UPDATE tokens SET registered_at = ? WHERE collection_address = ? AND bucket = ? AND token_id = ?";
  const buckets = groupByBucket(registration.tokenIds);
  await concurrently(bucketsAtATime, buckets, ({ bucket, tokenIds }) =>
    cassandra.batch(
      tokenIds.map((tokenId) => ({ query, params: [registration.registeredAt, collectionAddress, bucket, tokenId] })),
    ),
  );
  return buckets.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
}

export async function readToken(cassandra: Cassandra, collectionAddress: string, tokenId: string): Promise<Token | undefined> {
  const [row] = await cassandra.read(
    "SELECT registered_at, metadata, content_hash, version, refreshed_at, refresh_id FROM tokens " +
      "WHERE collection_address = ? AND bucket = ? AND token_id = ?",
    [collectionAddress, bucketOf(tokenId), tokenId],
  );
  if (row === undefined) return undefined;
  return {
    collectionAddress,
    tokenId,
    registeredAt: numberOrNull(row.registered_at),
    metadata: textOrNull(row.metadata),
    contentHash: textOrNull(row.content_hash),
    version: numberOrNull(row.version),
    refreshedAt: numberOrNull(row.refreshed_at),
    refreshId: textOrNull(row.refresh_id),
  };
}

const numberOrNull = (cell: unknown): number | null => (cell === null ? null : Number(cell));
const textOrNull = (cell: unknown): string | null => (cell === null ? null : String(cell));
