import type { Cassandra } from "../../../services/common/cassandra/session.ts";
import { bucketOf } from "../../../services/common/messages/token-id.ts";

/** The tokens of one partition of the tokens table (up to 256 of one collection) that have content. */
export interface TokenBucket {
  /** Place of the partition in the table's own order: a signed 64-bit number. Everything before it has been given already. */
  readonly position: bigint;
  readonly collection: string;
  readonly tokenIds: readonly string[];
}

const selectPartitions =
  "SELECT DISTINCT collection_address, bucket, token(collection_address, bucket) AS position FROM tokens WHERE token(collection_address, bucket) >= ?";
const selectTokens = "SELECT token_id, version FROM tokens WHERE collection_address = ? AND bucket = ?";
const selectPosition =
  "SELECT DISTINCT token(collection_address, bucket) AS position FROM tokens WHERE collection_address = ? AND bucket = ?";

/** Before every place. */
export const firstPosition = -(2n ** 63n);
const partitionsPerPage = 1_000;

/**
 * The table in its own order from a position on, of one collection where one is given. The keys of all partitions are read for it:
 * a collection does not know its buckets. A partition that is added meanwhile may be missed, but what is added is published anyway.
 */
export async function* scanTokens(
  cassandra: Pick<Cassandra, "read" | "readPage">,
  { from, collection }: { from: bigint; collection: string | undefined },
): AsyncGenerator<TokenBucket> {
  let pageState: string | undefined;
  do {
    const page = await cassandra.readPage(selectPartitions, [from], {
      pageSize: partitionsPerPage,
      ...(pageState === undefined ? {} : { pageState }),
    });
    for (const { collection_address, bucket, position } of page.rows) {
      const owner = String(collection_address);
      if (collection !== undefined && owner !== collection) continue;
      const tokenIds = await contentIn(cassandra, owner, String(bucket));
      yield { position: BigInt(String(position)), collection: owner, tokenIds };
    }
    pageState = page.pageState;
  } while (pageState !== undefined);
}

/** One token as a scan of its own; empty where it has no content. */
export async function findToken(cassandra: Pick<Cassandra, "read">, collection: string, tokenId: string): Promise<TokenBucket[]> {
  const bucket = bucketOf(tokenId);
  const [row] = await cassandra.read(selectPosition, [collection, bucket]);
  const known = row === undefined ? [] : await contentIn(cassandra, collection, bucket);
  return known.includes(tokenId) ? [{ position: BigInt(String(row?.position)), collection, tokenIds: [tokenId] }] : [];
}

/** Registered tokens without content are left out: there is nothing to publish. */
async function contentIn(cassandra: Pick<Cassandra, "read">, collection: string, bucket: string): Promise<string[]> {
  const rows = await cassandra.read(selectTokens, [collection, bucket]);
  return rows.filter(({ version }) => version !== null).map(({ token_id }) => String(token_id));
}
