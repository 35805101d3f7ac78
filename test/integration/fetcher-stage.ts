import { randomInt, randomUUID } from "node:crypto";
import type { Kafka } from "kafkajs";
import { microsFromMs } from "../../services/common/clock.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import { createGroupLag } from "../../services/common/kafka/consume/group-lag.ts";
import type { Codec, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { loadTopics, type TopicDefinition } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import type { TokenOutcome, TokenRefresh } from "../../services/common/messages/records.ts";
import { parse } from "../../services/fetcher/config.ts";
import { run } from "../../services/fetcher/run.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { type MetadataApi, startMetadataApi } from "../support/metadata-api.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { type ReadRecord, readTopic, type TopicReader } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";

const partitionCount = loadTopics().tokenRequested.partitions;

/** A corner of the stack with the fetcher's topics, a Metadata API, and what the fetcher wrote. */
export interface FetcherStage {
  readonly environment: TestEnvironment;
  readonly kafka: Kafka;
  readonly api: MetadataApi;
  readonly outcomes: TopicReader<TokenOutcome>;
  readonly deadLetters: TopicReader<Buffer>;
  /** The delay tiers, by name: `retry-2s`. */
  readonly tier: (name: string) => TopicReader<TokenRefresh>;
  /** The fetcher in this process; `settings` over the environment's. */
  start(settings?: Readonly<Record<string, string>>): Promise<TestServiceContext>;
  /** Writes the records as the splitter does; resolves when they are acknowledged, with the append times. */
  submit(records: readonly TokenRefresh[], topic?: TopicDefinition): Promise<readonly number[]>;
  /** Waits until each of these has an outcome; gives the first outcome of each, in their order. */
  outcomesOf(records: readonly TokenRefresh[], withinMs?: number): Promise<TokenOutcome[]>;
  /** Waits until the fetcher has committed everything that its topics hold, or these of them. */
  allCommitted(topics?: readonly TopicDefinition[]): Promise<void>;
  close(): Promise<void>;
}

export async function createFetcherStage(name: string, options: { delays?: string } = {}): Promise<FetcherStage> {
  const environment = await createEnvironment(name, options);
  const { env, topics } = environment;
  const logger = createLogger("test", "silent");
  const kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs: 5_000, logger });
  const fetchTopics = [topics.tokenRequested, ...topics.retryTiers];
  const [codec, producer, api, outcomes, deadLetters, ...tiers] = await Promise.all([
    createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses: fetchTopics }),
    createProducer(kafka, { topics, logger, requestTimeoutMs: 5_000 }),
    startMetadataApi(),
    readTopic<TokenOutcome>(env, topics.tokenOutcome.name),
    readTopic<Buffer>(env, topics.deadLetter.name),
    ...topics.retryTiers.map((topic) => readTopic<TokenRefresh>(env, topic.name)),
  ]);
  const lag = createGroupLag(kafka);
  return {
    environment,
    kafka,
    api,
    outcomes,
    deadLetters,
    tier: (tierName) => {
      const reader = tiers[topics.retryTiers.findIndex(({ baseName }) => baseName.includes(`.${tierName}.`))];
      if (reader === undefined) throw new Error(`there is no ${tierName}`);
      return reader;
    },
    start: (settings) => startFetcher({ ...env, ...settings }),
    submit: (records, topic = topics.tokenRequested) => submit(records, { topic, codec, producer }),
    outcomesOf: (records, withinMs) => outcomesOf(outcomes, records, withinMs),
    allCommitted: async (of = fetchTopics) => {
      const partitions = of.flatMap((topic) =>
        Array.from({ length: topic.partitions }, (_, partition) => ({ topic: topic.name, partition })),
      );
      const look = () => lag.lag(`${env.GROUP_PREFIX}.fetcher`, partitions);
      await waitFor("the fetcher has committed everything", look, (behind) => behind === 0);
    },
    close: async () => {
      await Promise.all([outcomes, deadLetters, ...tiers].map((reader) => reader.close()));
      await Promise.all([producer.close(), api.close(), lag.close()]);
      await environment.close();
    },
  };
}

async function startFetcher(env: Readonly<Record<string, string>>): Promise<TestServiceContext> {
  const parsed = parse(env);
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  const service = createServiceContext("fetcher");
  await run(parsed.config, service);
  return service;
}

async function submit(
  records: readonly TokenRefresh[],
  { topic, codec, producer }: { topic: TopicDefinition; codec: Codec; producer: RecordProducer },
): Promise<readonly number[]> {
  const results = await producer.deliver(
    records.map((record) => ({ topic: topic.name, key: String(record.project_id), value: codec.encode(topic.name, record) })),
  );
  return results.map((result) => (result.ok ? result.appendTimeMs : Number.NaN));
}

const placeOf = ({ refresh_id, ordinal }: { refresh_id: string; ordinal: number }) => `${refresh_id}/${ordinal}`;

async function outcomesOf(
  reader: TopicReader<TokenOutcome>,
  records: readonly TokenRefresh[],
  withinMs = 60_000,
): Promise<TokenOutcome[]> {
  const firstOf = (seen: readonly ReadRecord<TokenOutcome>[]) => {
    const byPlace = new Map(seen.toReversed().map(({ value }) => [placeOf(value), value]));
    return records.flatMap((record) => byPlace.get(placeOf(record)) ?? []);
  };
  const seen = await reader.until(`outcomes of ${records.length} tokens`, (all) => firstOf(all).length === records.length, {
    withinMs,
  });
  return firstOf(seen);
}

/** A project whose records lie in the same partitions as those of another one. */
export function neighbourOf(projectId: number): number {
  const partition = (id: number) => partitionOf(String(id), partitionCount);
  let neighbour = projectId + 1;
  while (partition(neighbour) !== partition(projectId)) neighbour += 1;
  return neighbour;
}

/** Token refreshes of one refresh of a project and a collection that no other test has. */
export function refreshOf(api: { readonly url: string }, count: number, changes: Partial<TokenRefresh> = {}): TokenRefresh[] {
  const requestedAt = microsFromMs(Date.now());
  const common = {
    refresh_id: randomUUID(),
    total: count,
    project_id: randomInt(2 ** 40),
    collection_address: `0x${randomUUID().replaceAll("-", "")}00000000`,
    requested_at: requestedAt,
    deadline: requestedAt + microsFromMs(3_600_000),
    metadata_api_url: api.url,
    max_concurrency: null,
    max_requests_per_second: null,
    emission: 1,
    attempt: 1,
    first_queued_at: requestedAt,
    attempts: [],
  };
  return Array.from({ length: count }, (_, ordinal) => ({
    ...common,
    ordinal,
    token_id: String(randomInt(2 ** 47)),
    ...changes,
  }));
}
