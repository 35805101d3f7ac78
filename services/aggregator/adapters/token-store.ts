import { concurrently } from "../../common/cassandra/parallel.ts";
import type { Cassandra, Row, Statement } from "../../common/cassandra/session.ts";
import { bucketOf } from "../../common/messages/token-id.ts";
import type { TokenWrite } from "../core/plan.ts";
import type { TokenAddress, TokenStore } from "../core/ports.ts";
import { groupBySize } from "../core/size-groups.ts";
import type { TokenHead } from "../core/token.ts";
import type { DurableWrite } from "./durable-write.ts";

const selectHeads =
  "SELECT token_id, version, content_hash, previous_hash FROM tokens WHERE collection_address = ? AND bucket = ?";
const selectThese = `${selectHeads} AND token_id IN ?`;
const selectNeighbours = `${selectHeads} AND token_id >= ? AND token_id <= ?`;
const updateContent =
  "UPDATE tokens USING TIMESTAMP ? SET metadata = ?, content_hash = ?, previous_hash = ?, version = ?, refreshed_at = ?, refresh_id = ? WHERE collection_address = ? AND bucket = ? AND token_id = ?";
const updateRefreshed =
  "UPDATE tokens USING TIMESTAMP ? SET refreshed_at = ?, refresh_id = ? WHERE collection_address = ? AND bucket = ? AND token_id = ?";

/** README, Decisions: within one partition, up to 512 KiB, rows over 32 KiB alone. 50 to 100 rows is where batches are fastest. */
const batchLimits = { maxBytes: 512 * 1024, maxCount: 100, aloneBytes: 32 * 1024 };
/** What a row holds besides the text of its metadata. */
const rowOverheadBytes = 512;
const requestsAtOnce = 32;

/** Rows of `tokens`, in buckets of up to 256 neighbours. Written with the outcome's version as timestamp: the newest wins. */
export function createTokenStore(cassandra: Pick<Cassandra, "read" | "batch">, untilDurable: DurableWrite): TokenStore {
  return {
    async load(tokens) {
      const heads = new Map<string, TokenHead>();
      await concurrently(
        requestsAtOnce,
        byBucket(tokens, (token) => token),
        async ({ collection, bucket, items }) => {
          const ids = new Set(items.map(({ token_id }) => token_id));
          const { query, params } = headsOf([...ids]);
          for (const row of await cassandra.read(query, [collection, bucket, ...params])) {
            const id = String(row.token_id);
            if (row.version !== null && ids.has(id)) heads.set(`${collection}:${id}`, headOf(row));
          }
        },
      );
      return heads;
    },
    async write(writes, signal) {
      const batches = byBucket(writes, ({ outcome }) => outcome.record).flatMap(({ bucket, items }) =>
        groupBySize(items, bytesOf, batchLimits).map((group) => group.map((write) => statementOf(write, bucket))),
      );
      await concurrently(requestsAtOnce, batches, (batch) => untilDurable(() => cassandra.batch(batch), signal));
    },
  };
}

interface Bucket<T> {
  readonly collection: string;
  readonly bucket: string;
  readonly items: T[];
}

function byBucket<T>(items: readonly T[], addressOf: (item: T) => TokenAddress): Bucket<T>[] {
  const buckets = new Map<string, Bucket<T>>();
  for (const item of items) {
    const { collection_address: collection, token_id } = addressOf(item);
    const bucket = bucketOf(token_id);
    const key = `${collection}:${bucket}`;
    const known = buckets.get(key);
    if (known === undefined) buckets.set(key, { collection, bucket, items: [item] });
    else known.items.push(item);
  }
  return [...buckets.values()];
}

/** From as many on a range is read. */
const leastNeighbourCount = 8;

/**
 * What reads the heads of these tokens of a bucket. Cassandra looks up each id that is given by name, which costs it several times what
 * passing over a row does: close neighbours are read as a range, even when as many others lie between them.
 */
function headsOf(ids: readonly string[]): Statement {
  const { first, last } = endsOf(ids);
  // As texts, which is how they are stored, only numbers of one length stand in their order.
  const isRange = ids.length >= leastNeighbourCount && ids.every(({ length }) => length === first.length);
  if (!isRange || BigInt(last) - BigInt(first) >= 2 * ids.length) return { query: selectThese, params: [ids] };
  return { query: selectNeighbours, params: [first, last] };
}

function endsOf([head = "", ...others]: readonly string[]): { first: string; last: string } {
  let [first, last] = [head, head];
  for (const id of others) {
    if (id < first) first = id;
    if (id > last) last = id;
  }
  return { first, last };
}

/** The registry's cell alone makes a row without a version: such a token has no content. */
function headOf(row: Row): TokenHead {
  return {
    version: Number(row.version),
    contentHash: String(row.content_hash),
    previousHash: String(row.previous_hash),
  };
}

function bytesOf({ outcome, content }: TokenWrite): number {
  return rowOverheadBytes + (content === null ? 0 : outcome.bytes);
}

function statementOf({ outcome: { version, record }, content }: TokenWrite, bucket: string): Statement {
  const who = [record.created_at, record.refresh_id, record.collection_address, bucket, record.token_id];
  if (content === null) return { query: updateRefreshed, params: [version, ...who] };
  const { metadata, head } = content;
  return {
    query: updateContent,
    params: [version, metadata, head.contentHash, head.previousHash, head.version, ...who],
  };
}
