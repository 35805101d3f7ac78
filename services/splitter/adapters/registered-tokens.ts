import { concurrently } from "../../common/cassandra/parallel.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import { bucketOf } from "../../common/messages/token-id.ts";
import type { ReadRegistered } from "../core/ports.ts";

const query = "SELECT token_id, registered_at FROM tokens WHERE collection_address = ? AND bucket = ? AND token_id IN ?";

/** Token ids that are no neighbours have a bucket each: a refresh may need a thousand reads. */
const readsAtOnce = 32;

export function createReadRegistered(cassandra: Pick<Cassandra, "read">): ReadRegistered {
  return async (collectionAddress, tokenIds) => {
    const buckets = [...Map.groupBy(tokenIds, bucketOf)];
    const read = ([bucket, ids]: [string, string[]]) => cassandra.read(query, [collectionAddress, bucket, ids]);
    const rows = (await concurrently(readsAtOnce, buckets, read)).flat();
    // A token of a collection that once had the policy `open` has a row without a registration.
    return new Set(rows.filter(({ registered_at }) => registered_at !== null).map(({ token_id }) => String(token_id)));
  };
}
