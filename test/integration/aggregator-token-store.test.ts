import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDurableWrite } from "../../services/aggregator/adapters/durable-write.ts";
import { createTokenStore } from "../../services/aggregator/adapters/token-store.ts";
import type { TokenStore } from "../../services/aggregator/core/ports.ts";
import { migrate } from "../../services/common/cassandra/migrate.ts";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { createKeyspace } from "./cassandra-keyspace.ts";

const keyspace = createKeyspace("tokens");
const collection = `0x${"a1".repeat(20)}`;
const registeredOnly = "1005";
// Two buckets with all their rows, where lengths change and where they do not, and the largest ids there are.
const stored = [...idsFrom(0n, 120), ...idsFrom(990n, 100), ...idsFrom(2n ** 256n - 64n, 64)];
const versions = new Map(stored.map((id, index) => [id, 2 ** 40 + index]));
let cassandra: Cassandra;
let store: TokenStore;

function idsFrom(first: bigint, count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(first + BigInt(index)));
}

beforeAll(async () => {
  await migrate({ ...keyspace.cluster, replicationFactor: 1, folder: join(import.meta.dirname, "../../schemas/cassandra") });
  cassandra = await connectCassandra(keyspace.cluster);
  store = createTokenStore(cassandra, createDurableWrite(keyspace.cluster.logger));
  const insert =
    "INSERT INTO tokens (collection_address, bucket, token_id, version, content_hash, previous_hash) VALUES (?, ?, ?, ?, ?, ?)";
  const register = "INSERT INTO tokens (collection_address, bucket, token_id, registered_at) VALUES (?, ?, ?, ?)";
  for (const [id, version] of versions) {
    const place = [collection, bucketOf(id), id];
    if (id === registeredOnly) await cassandra.write(register, [...place, 1]);
    else await cassandra.write(insert, [...place, version, `hash of ${id}`, ""]);
  }
});

afterAll(async () => {
  await cassandra.close();
  await keyspace.close();
});

async function heads(ids: readonly string[]) {
  return store.load(ids.map((token_id) => ({ collection_address: collection, token_id })));
}

function expectedHeads(ids: readonly string[]) {
  const contents = ids.filter((id) => versions.has(id) && id !== registeredOnly);
  return new Map(
    contents.map((id) => [`${collection}:${id}`, { version: versions.get(id), contentHash: `hash of ${id}`, previousHash: "" }]),
  );
}

describe("heads of tokens", () => {
  it.each([
    ["one", ["1000"]],
    ["neighbours", idsFrom(1_000n, 40)],
    ["neighbours, one of them without content", idsFrom(1_001n, 8)],
    ["neighbours around a longer number", idsFrom(95n, 12)],
    ["neighbours in two buckets", idsFrom(1_010n, 60)],
    ["every other one", idsFrom(1_030n, 40).filter((_, index) => index % 2 === 0)],
    ["far ones", ["0", "9", "10", "19", "50", "51", "99", "100", "119"]],
    ["the largest", idsFrom(2n ** 256n - 20n, 20)],
    ["tokens that nobody stored", idsFrom(5_000n, 20)],
  ])("are those of exactly the tokens that were asked for: %s", async (_what, ids) => {
    expect(await heads(ids)).toEqual(expectedHeads(ids));
  });

  it("are those of exactly the tokens that were asked for, whichever they are", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.constantFrom(...stored, "120", "1100", "7"), { minLength: 1 }), async (ids) => {
        expect(await heads(ids)).toEqual(expectedHeads(ids));
      }),
      { numRuns: 50 },
    );
  });
});
