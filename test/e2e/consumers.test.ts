import { afterAll, beforeAll, expect, it } from "vitest";
import { connectCassandra } from "../../services/common/cassandra/session.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { ExampleConsumer, type HeldToken, languages } from "../consumers/consumer.ts";
import { type TestProject, TestSystem, tokenIdsFrom } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";

const tokenIds = tokenIdsFrom(1, 300);
let system: TestSystem;
let project: TestProject;
let consumers: { language: string; consumer: ExampleConsumer }[] = [];

beforeAll(async () => {
  system = await TestSystem.start("consumers", { delays: "retry-2s=300,retry-10s=900,retry-60s=2000,retry-600s=4000" });
  project = await system.createProject({ tokenIds });
  project.api.otherwise({ delayMs: 10 });
});

afterAll(async () => {
  for (const { consumer } of consumers) await consumer.stop();
  await system?.close();
});

it("a consumer in each language ends with what Cassandra has, while the services are killed and restarted", async () => {
  const { env, topics } = system.environment;
  const start = async (language: (typeof languages)[number]) => {
    const following = {
      brokers: env.KAFKA_BROKERS ?? "",
      registry: env.SCHEMA_REGISTRY_URL ?? "",
      topic: topics.tokenState.name,
      collection: project.collection,
    };
    return { language, consumer: await ExampleConsumer.start(language, following) };
  };
  await system.completed(project, await system.refresh(project, tokenIds));
  // They bootstrap from what is there, and follow what comes now.
  consumers = await Promise.all(languages.map(start));
  for (const service of ["aggregator", "fetcher", "splitter"] as const) {
    const callsBefore = project.api.calls.length;
    project.api.otherwise((tokenId) => ({ delayMs: 10, body: JSON.stringify({ name: `${tokenId} after the ${service}` }) }));
    const refreshId = await system.refresh(project, tokenIds);
    await waitFor(
      "calls under way",
      () => project.api.calls.length,
      (count) => count > callsBefore,
      { everyMs: 1 },
    );
    await system.killAndRestart(service);
    await system.completed(project, refreshId);
  }
  const stored = await storedTokens();
  expect(stored).toHaveLength(tokenIds.length);
  for (const { language, consumer } of consumers) {
    const { tokens } = await consumer.snapshot();
    expect(sorted(tokens), language).toEqual(sorted(stored));
  }
});

async function storedTokens(): Promise<HeldToken[]> {
  const { env } = system.environment;
  const cassandra = await connectCassandra({
    contactPoints: (env.CASSANDRA_CONTACT_POINTS ?? "").split(","),
    datacenter: env.CASSANDRA_DATACENTER ?? "",
    keyspace: env.CASSANDRA_KEYSPACE ?? "",
    logger: createLogger("consumers", "silent"),
  });
  try {
    const buckets = [...new Set(tokenIds.map(bucketOf))];
    const query = "SELECT token_id, version, content_hash, metadata FROM tokens WHERE collection_address = ? AND bucket = ?";
    const rows = await Promise.all(buckets.map((bucket) => cassandra.read(query, [project.collection, bucket])));
    return rows.flat().map((row) => ({ ...row, version: Number(row.version) }) as HeldToken);
  } finally {
    await cassandra.close();
  }
}

function sorted(tokens: readonly HeldToken[]): HeldToken[] {
  return tokens
    .map(({ token_id, version, content_hash, metadata }) => ({ token_id, version, content_hash, metadata }))
    .toSorted((a, b) => Number(a.token_id) - Number(b.token_id));
}
