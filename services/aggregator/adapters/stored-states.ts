import { concurrently } from "../../common/cassandra/parallel.ts";
import type { Cassandra, Row } from "../../common/cassandra/session.ts";
import type { TokenState } from "../../common/messages/records.ts";
import { bucketOf } from "../../common/messages/token-id.ts";
import type { TokenAddress } from "../core/ports.ts";
import type { LoadStates } from "../core/republish.ts";

const selectStates =
  "SELECT token_id, version, content_hash, metadata, refresh_id, refreshed_at FROM tokens WHERE collection_address = ? AND bucket = ? AND token_id IN ?";
const readsAtOnce = 8;

/** Reads rows of `tokens` whole, with their text; a token that is named twice is given once for each. */
export function createLoadStates(cassandra: Pick<Cassandra, "read">): LoadStates {
  return async (tokens) => {
    const buckets = Map.groupBy(tokens, ({ collection_address, token_id }) => `${collection_address}:${bucketOf(token_id)}`);
    const found = await concurrently(readsAtOnce, [...buckets.values()], (bucket) => readBucket(cassandra, bucket));
    const states = new Map(found.flat().map((state) => [keyOf(state), state]));
    return tokens.flatMap((token) => states.get(keyOf(token)) ?? []);
  };
}

/** Tokens of one bucket. The registry's cell alone makes a row without a version: such a token has no content. */
async function readBucket(cassandra: Pick<Cassandra, "read">, tokens: readonly TokenAddress[]): Promise<TokenState[]> {
  const [first] = tokens;
  if (first === undefined) return [];
  const collection = first.collection_address;
  const ids = tokens.map(({ token_id }) => token_id);
  const rows = await cassandra.read(selectStates, [collection, bucketOf(first.token_id), ids]);
  return rows.filter(({ version }) => version !== null).map((row) => stateOf(collection, row));
}

function stateOf(collection: string, row: Row): TokenState {
  return {
    collection_address: collection,
    token_id: String(row.token_id),
    version: Number(row.version),
    content_hash: String(row.content_hash),
    metadata: String(row.metadata),
    refresh_id: String(row.refresh_id),
    refreshed_at: Number(row.refreshed_at),
  };
}

const keyOf = ({ collection_address, token_id }: TokenAddress): string => `${collection_address}:${token_id}`;
