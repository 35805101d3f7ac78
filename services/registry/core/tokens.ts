import { bucketOf } from "../../common/messages/token-id.ts";

/** A token as it stands in the table: registered, refreshed, or both. Times are micros. */
export interface Token {
  readonly collectionAddress: string;
  readonly tokenId: string;
  readonly registeredAt: number | null;
  readonly metadata: string | null;
  readonly contentHash: string | null;
  readonly version: number | null;
  readonly refreshedAt: number | null;
  readonly refreshId: string | null;
}

/** The tokens of one partition: at most 256, a bucket has no more. */
export interface TokenBucket {
  readonly bucket: string;
  readonly tokenIds: readonly string[];
}

/** Grouped as they are stored, each token once. */
export function groupByBucket(tokenIds: readonly string[]): TokenBucket[] {
  const groups = Map.groupBy(new Set(tokenIds), bucketOf);
  return [...groups].map(([bucket, ids]) => ({ bucket, tokenIds: ids }));
}
