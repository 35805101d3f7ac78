import { createHash } from "node:crypto";
import type { Kafka } from "kafkajs";
import { v7 as uuidv7 } from "uuid";
import { createDurableWrite } from "../../services/aggregator/adapters/durable-write.ts";
import { createPublisher } from "../../services/aggregator/adapters/publisher.ts";
import { createRefreshStore } from "../../services/aggregator/adapters/refresh-store.ts";
import { createTokenStore } from "../../services/aggregator/adapters/token-store.ts";
import { parse } from "../../services/aggregator/config.ts";
import { Aggregator } from "../../services/aggregator/core/aggregator.ts";
import type { Publisher, RefreshStore, Telemetry, TokenStore } from "../../services/aggregator/core/ports.ts";
import { run } from "../../services/aggregator/run.ts";
import { type Cassandra, connectCassandra, type Row } from "../../services/common/cassandra/session.ts";
import { microsFromMs } from "../../services/common/clock.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { BatchContext, Codec, DecodedRecord, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import type { ErrorCode, RefreshCompleted, TokenOutcome, TokenState } from "../../services/common/messages/records.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { readTopic, type TopicReader } from "../support/topic-reader.ts";

export const hashOf = (content: string): string => createHash("sha256").update(content).digest("hex");

export function success(content: string): Partial<TokenOutcome> {
  return { status_code: 200, metadata: content, content_hash: hashOf(content) };
}

export function failure(error_code: ErrorCode, change: Partial<TokenOutcome> = {}): Partial<TokenOutcome> {
  return { status_code: null, metadata: null, content_hash: null, error_code, ...change };
}

/** The outcomes of one refresh, one per token, in order: `["7", success("A")]`. */
export function refreshOf(collection: string, ...tokens: readonly (readonly [string, Partial<TokenOutcome>])[]): TokenOutcome[] {
  const refresh_id = uuidv7();
  const requested_at = microsFromMs(Date.now());
  return tokens.map(([token_id, result], ordinal, { length: total }) => ({
    refresh_id,
    ordinal,
    total,
    project_id: 7,
    collection_address: collection,
    token_id,
    requested_at,
    created_at: requested_at + 1_000_000 + ordinal,
    emission: 1,
    url: `https://api.example.com/${token_id}`,
    status_code: 200,
    metadata: null,
    content_hash: null,
    error_code: null,
    error_detail: null,
    response_body: null,
    attempts: [],
    ...result,
  }));
}

/** The three effects of an instance that come before its commit. */
interface Ports {
  readonly tokens: TokenStore;
  readonly refreshes: RefreshStore;
  readonly publisher: Publisher;
}

const silent: Telemetry = { segmentApplied() {}, batchStarted: () => () => {}, fenced() {} };

/** An environment with the aggregator in it, whatever a test makes of it, and eyes on all that it leaves behind. */
export class Stage {
  readonly environment: TestEnvironment;
  readonly cassandra: Cassandra;
  readonly states: TopicReader<TokenState>;
  readonly completions: TopicReader<RefreshCompleted>;
  readonly deadLetters: TopicReader<Buffer>;
  readonly kafka: Kafka;
  readonly #codec: Codec;
  readonly #producer: RecordProducer;
  readonly #services: TestServiceContext[] = [];
  #collections = 0;

  private constructor(parts: {
    environment: TestEnvironment;
    kafka: Kafka;
    cassandra: Cassandra;
    codec: Codec;
    producer: RecordProducer;
    readers: [TopicReader<TokenState>, TopicReader<RefreshCompleted>, TopicReader<Buffer>];
  }) {
    this.environment = parts.environment;
    this.kafka = parts.kafka;
    this.cassandra = parts.cassandra;
    this.#codec = parts.codec;
    this.#producer = parts.producer;
    [this.states, this.completions, this.deadLetters] = parts.readers;
  }

  static async create(name: string): Promise<Stage> {
    const environment = await createEnvironment(name);
    const { env, topics } = environment;
    const logger = createLogger("test", "silent");
    const requestTimeoutMs = 5_000;
    const kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs, logger });
    const uses = [topics.tokenOutcome, topics.tokenState, topics.refreshCompleted];
    const [codec, producer, cassandra, ...readers] = await Promise.all([
      createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses }),
      createProducer(kafka, { topics, logger, requestTimeoutMs }),
      connectCassandra({
        contactPoints: [env.CASSANDRA_CONTACT_POINTS ?? ""],
        datacenter: env.CASSANDRA_DATACENTER ?? "",
        keyspace: env.CASSANDRA_KEYSPACE ?? "",
        logger,
      }),
      readTopic<TokenState>(env, topics.tokenState.name),
      readTopic<RefreshCompleted>(env, topics.refreshCompleted.name),
      readTopic<Buffer>(env, topics.deadLetter.name),
    ]);
    return new Stage({ environment, kafka, cassandra, codec, producer, readers });
  }

  /** A collection that nobody else uses; with a partition given, one of that partition of token.outcome. */
  collection(partition?: number): string {
    const { partitions } = this.environment.topics.tokenOutcome;
    for (;;) {
      this.#collections += 1;
      const address = `0x${this.#collections.toString(16).padStart(40, "0")}`;
      if (partition === undefined || partitionOf(address, partitions) === partition) return address;
    }
  }

  /** In order; returns the records as a consumer gets them. */
  async produce(outcomes: readonly TokenOutcome[]): Promise<DecodedRecord<TokenOutcome>[]> {
    const topic = this.environment.topics.tokenOutcome.name;
    const values = outcomes.map((value) => this.#codec.encode(topic, value));
    const keys = outcomes.map(({ collection_address }) => collection_address);
    const sent = await this.#producer.deliver(values.map((value, index) => ({ topic, key: keys[index] ?? "", value })));
    return sent.map((result, index) => {
      if (!result.ok) throw new Error(result.message);
      const { partition, offset, appendTimeMs } = result;
      const value = outcomes[index] as TokenOutcome;
      return { topic, partition, offset, key: value.collection_address, timestampMs: appendTimeMs, bytes: 1_000, value };
    });
  }

  /** The service in this process. */
  async start(environment: Readonly<Record<string, string>> = {}): Promise<TestServiceContext> {
    const parsed = parse({ ...this.environment.env, ...environment });
    if (!parsed.ok) throw new Error(parsed.problems.join());
    const context = createServiceContext("aggregator");
    this.#services.push(context);
    await run(parsed.config, context);
    context.health.markStarted();
    return context;
  }

  async stopServices(): Promise<void> {
    await Promise.all(this.#services.splice(0).map((context) => context.stop()));
  }

  /** An instance of its own on the real servers, whose effects a test may hold up or break off. */
  instance(change: (ports: Ports) => Partial<Ports> = () => ({})): Aggregator {
    const { topics } = this.environment;
    const untilDurable = createDurableWrite(createLogger("test", "silent"));
    const { cassandra } = this;
    const ports: Ports = {
      tokens: createTokenStore(cassandra, untilDurable),
      refreshes: createRefreshStore({ cassandra, untilDurable, nowMs: Date.now, retentionSeconds: 86_400 }),
      publisher: createPublisher({ codec: this.#codec, topics, states: this.#producer, completions: this.#producer }),
    };
    const caches = { progress: new Map() };
    return new Aggregator({ generation: 1, telemetry: silent, ...caches, ...ports, ...change(ports) });
  }

  /** What a batch of these records gives its handler. */
  context(records: readonly DecodedRecord<TokenOutcome>[], mayAct: () => boolean = () => true): BatchContext {
    const { topic = "", partition = 0, offset = 0 } = records.at(-1) ?? {};
    return { topic, partition, signal: new AbortController().signal, mayAct, highWatermark: offset + 1 };
  }

  async token(collection: string, tokenId: string): Promise<Row | undefined> {
    const query =
      "SELECT metadata, content_hash, previous_hash, version, refreshed_at, refresh_id, registered_at, WRITETIME(metadata) AS written, WRITETIME(refresh_id) AS touched FROM tokens WHERE collection_address = ? AND bucket = ? AND token_id = ?";
    const [row] = await this.cassandra.read(query, [collection, bucketOf(tokenId), tokenId]);
    return row;
  }

  async progress(refreshId: string): Promise<Row | undefined> {
    const query =
      "SELECT total, done, failed, succeeded_count, unchanged_count, failed_count, failed_by_code, completed_at, completed_version, WRITETIME(done) AS written, TTL(done) AS ttl FROM refresh_progress WHERE refresh_id = ?";
    const [row] = await this.cassandra.read(query, [refreshId]);
    return row;
  }

  errors(refreshId: string): Promise<Row[]> {
    return this.cassandra.read("SELECT * FROM refresh_errors WHERE refresh_id = ?", [refreshId]);
  }

  /** Waits for the completion of the refresh that these outcomes belong to, and until all that was published before it is read. */
  async completed([first]: readonly TokenOutcome[]): Promise<RefreshCompleted> {
    const id = first?.refresh_id;
    const records = await this.completions.until(`completion of ${id}`, (all) => all.some(({ key }) => key === id));
    await Promise.all([this.states.caughtUp(), this.completions.caughtUp()]);
    return records.find(({ key }) => key === id)?.value as RefreshCompleted;
  }

  /** The contents published for a token, in the order of the topic. */
  published(collection: string, tokenId: string): TokenState[] {
    return this.states.records.filter(({ key }) => key === `${collection}:${tokenId}`).map(({ value }) => value);
  }

  /** The compacted topic's answer for a token, once it has this version. */
  async latest(collection: string, tokenId: string, version: number): Promise<TokenState | undefined> {
    const has = () => this.published(collection, tokenId).some((state) => state.version >= version);
    await this.states.until(`version ${version} of ${tokenId}`, has);
    return this.published(collection, tokenId).at(-1);
  }

  async close(): Promise<void> {
    await this.stopServices();
    await Promise.all([this.states, this.completions, this.deadLetters].map((reader) => reader.close()));
    await Promise.all([this.#producer.close(), this.cassandra.close()]);
    await this.environment.close();
  }
}
