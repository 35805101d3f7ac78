import { LRUCache } from "lru-cache";
import { connectCassandra } from "../common/cassandra/session.ts";
import { createKafka } from "../common/kafka/client.ts";
import { createCodec } from "../common/kafka/codec.ts";
import { startBatchConsumer } from "../common/kafka/consume/batch-consumer.ts";
import { createDeadLetters } from "../common/kafka/consume/dead-letters.ts";
import { createProducer } from "../common/kafka/produce/producer.ts";
import { loadTopics } from "../common/kafka/topics.ts";
import type { ServiceContext } from "../common/lifecycle/context.ts";
import { createDurableWrite } from "./adapters/durable-write.ts";
import { createPublisher } from "./adapters/publisher.ts";
import { createRefreshStore } from "./adapters/refresh-store.ts";
import { createLoadStates } from "./adapters/stored-states.ts";
import { createTelemetry } from "./adapters/telemetry.ts";
import { createTokenStore } from "./adapters/token-store.ts";
import type { AggregatorConfig } from "./config.ts";
import { Aggregator } from "./core/aggregator.ts";
import { withCrashPoints } from "./core/crashing.ts";
import { withRepublishing } from "./core/republish.ts";

/** Turns the outcomes of tokens into token rows, the progress of refreshes, and the public topics. */
export async function run(config: AggregatorConfig, context: ServiceContext): Promise<void> {
  const { logger, metrics, clock, health, crashPoints } = context;
  const topics = loadTopics({ prefix: config.TOPIC_PREFIX, delays: config.TOPIC_DELAYS_MS });
  const requestTimeoutMs = config.KAFKA_REQUEST_TIMEOUT_MS;
  const kafka = createKafka({ brokers: config.KAFKA_BROKERS, clientId: "aggregator", requestTimeoutMs, logger });

  const cassandra = await connectCassandra({
    contactPoints: config.CASSANDRA_CONTACT_POINTS,
    datacenter: config.CASSANDRA_DATACENTER,
    keyspace: config.CASSANDRA_KEYSPACE,
    logger,
    metrics,
  });
  context.onStop("cassandra", () => cassandra.close());

  const codec = await createCodec({
    registryUrl: config.SCHEMA_REGISTRY_URL,
    uses: [topics.tokenOutcome, topics.tokenState, topics.refreshCompleted],
  });
  const states = await createProducer(kafka, { topics, logger, requestTimeoutMs, metrics });
  context.onStop("state producer", () => states.close());
  const producer = await createProducer(kafka, { topics, logger, requestTimeoutMs, metrics });
  context.onStop("producer", () => producer.close());

  const untilDurable = createDurableWrite(logger);
  const publisher = createPublisher({ codec, topics, states, completions: producer });
  const tokens = createTokenStore(cassandra, untilDurable);
  const refreshes = createRefreshStore({
    cassandra,
    untilDurable,
    nowMs: clock.nowMs,
    retentionSeconds: config.RETENTION_SECONDS,
  });
  const aggregator = new Aggregator({
    generation: topics.tokenOutcome.generation,
    ...withCrashPoints({ tokens, refreshes, publisher }, crashPoints),
    progress: new LRUCache({ max: config.PROGRESS_CACHE_COUNT }),
    telemetry: createTelemetry(logger, metrics),
  });
  metrics.gauge("partitions_fenced", "Partitions that stand still: their topic was re-created.", {}, (gauge) =>
    gauge.set({}, aggregator.fencedCount),
  );

  const republished = metrics.counter("token_states_republished_total", "Orders to publish a token again, by result.", {
    result: ["published", "unknown_token"],
  });
  const handler = withRepublishing({
    outcomes: aggregator.handle,
    loadStates: createLoadStates(cassandra),
    publisher,
    report: ({ publishedCount, unknownCount }) => {
      republished.inc({ result: "published" }, publishedCount);
      republished.inc({ result: "unknown_token" }, unknownCount);
    },
  });

  const groupId = `${config.GROUP_PREFIX}.aggregator`;
  const consumer = await startBatchConsumer(kafka, {
    groupId,
    topics: [{ topic: topics.tokenOutcome, handler }],
    gathers: true,
    codec,
    deadLetters: createDeadLetters({ producer, topics, metrics, service: "aggregator", groupId }),
    logger,
    metrics,
    clock,
    timing: {
      sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
      rebalanceTimeoutMs: config.REBALANCE_TIMEOUT_MS,
      heartbeatIntervalMs: config.HEARTBEAT_INTERVAL_MS,
      requestTimeoutMs,
    },
    onAssigned: () => aggregator.forget(),
    fail: context.fail,
  });
  context.onStop("consumer", () => consumer.stop());

  health.addReadyCheck("cassandra", () => cassandra.health());
  health.addReadyCheck("consumer", () => consumer.health());
  health.addReadyCheck("fence", () => aggregator.health());
}
