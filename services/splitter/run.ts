import { LRUCache } from "lru-cache";
import { writeRefreshRows } from "../common/cassandra/refresh-rows.ts";
import { connectCassandra } from "../common/cassandra/session.ts";
import { createKafka } from "../common/kafka/client.ts";
import { createCodec } from "../common/kafka/codec.ts";
import { startBatchConsumer } from "../common/kafka/consume/batch-consumer.ts";
import { createDeadLetters } from "../common/kafka/consume/dead-letters.ts";
import { createGroupLag } from "../common/kafka/consume/group-lag.ts";
import { createProducer } from "../common/kafka/produce/producer.ts";
import { loadTopics } from "../common/kafka/topics.ts";
import type { ServiceContext } from "../common/lifecycle/context.ts";
import { BrokerClock, teachBrokerClock } from "../common/retry/broker-clock.ts";
import { probeBrokerClock } from "../common/retry/clock-probe.ts";
import { createHandOver } from "./adapters/hand-over.ts";
import { createReadDone } from "./adapters/progress.ts";
import { createReadRegistered } from "./adapters/registered-tokens.ts";
import { createReports } from "./adapters/report.ts";
import { createIsUnderWay } from "./adapters/under-way.ts";
import type { SplitterConfig } from "./config.ts";
import { createRefreshHandler } from "./core/refresh-handler.ts";
import { createWatchdogHandler } from "./core/watchdog-handler.ts";

/** Checks remembered as made. A fork makes its copy of a check within the hour: this is the last hour of 100,000 refreshes. */
const rememberedChecks = 100_000;

/** Splits accepted refreshes into tokens, and looks after those that may be stuck. */
export async function run(config: SplitterConfig, context: ServiceContext): Promise<void> {
  const { logger, metrics, clock, health, crashPoints, onStop } = context;
  const topics = loadTopics({ prefix: config.TOPIC_PREFIX, delays: config.TOPIC_DELAYS_MS });
  const groupId = `${config.GROUP_PREFIX}.splitter`;
  const kafka = createKafka({
    brokers: config.KAFKA_BROKERS,
    clientId: groupId,
    requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
    logger,
  });
  const uses = [topics.refreshRequested, topics.watchdog, topics.tokenRequested, topics.tokenOutcome];
  const codec = await createCodec({ registryUrl: config.SCHEMA_REGISTRY_URL, uses });

  const cassandra = await connectCassandra({
    contactPoints: config.CASSANDRA_CONTACT_POINTS,
    datacenter: config.CASSANDRA_DATACENTER,
    keyspace: config.CASSANDRA_KEYSPACE,
    logger,
    metrics,
  });
  onStop("cassandra", () => cassandra.close());
  const brokerClock = new BrokerClock();
  const plainProducer = await createProducer(kafka, {
    topics,
    logger,
    metrics,
    requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
  });
  const producer = teachBrokerClock(plainProducer, brokerClock, clock);
  onStop("producer", () => producer.close());
  await probeBrokerClock(producer, topics, "splitter");
  const groupLag = createGroupLag(kafka);
  onStop("group lag", () => groupLag.close());

  const reports = createReports(logger, metrics);
  const retentionMicros = config.RETENTION_SECONDS * 1_000_000;
  const retention = { retentionSeconds: config.RETENTION_SECONDS };
  const readDone = createReadDone(cassandra);
  const readRegistered = createReadRegistered(cassandra);
  const deliver = crashPoints.halfway("half-fan-out", producer.deliver.bind(producer));
  const handOver = crashPoints.before(
    "before-fan-out",
    crashPoints.after("after-fan-out", createHandOver({ deliver, codec, topics })),
  );
  const onRefresh = createRefreshHandler({
    writeRefresh: (refresh) => writeRefreshRows(cassandra, refresh, { ...retention, nowMs: clock.nowMs() }),
    readDone,
    readRegistered,
    handOver,
    nowMs: clock.nowMs,
    retentionMicros,
    report: reports.refresh,
  });
  const checksMade = new LRUCache<string, true>({ max: rememberedChecks });
  const onCheck = createWatchdogHandler({
    readDone,
    readRegistered,
    isUnderWay: createIsUnderWay(groupLag, {
      topics,
      fetcherGroup: `${config.GROUP_PREFIX}.fetcher`,
      aggregatorGroup: `${config.GROUP_PREFIX}.aggregator`,
    }),
    handOver,
    madeChecks: { has: (check) => checksMade.has(check), add: (check) => void checksMade.set(check, true) },
    delayMs: topics.watchdog.delayMs ?? 0,
    retentionMicros,
    report: reports.watchdog,
  });

  const consumer = await startBatchConsumer(kafka, {
    groupId,
    topics: [
      { topic: topics.refreshRequested, handler: onRefresh },
      { topic: topics.watchdog, handler: onCheck },
    ],
    codec,
    deadLetters: createDeadLetters({ producer, topics, metrics, service: "splitter", groupId }),
    logger,
    metrics,
    clock,
    brokerClock,
    timing: {
      sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
      rebalanceTimeoutMs: config.REBALANCE_TIMEOUT_MS,
      heartbeatIntervalMs: config.HEARTBEAT_INTERVAL_MS,
      requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
    },
    fail: context.fail,
  });
  onStop("consumer", () => consumer.stop());
  health.addReadyCheck("kafka", () => consumer.health());
  health.addReadyCheck("cassandra", () => cassandra.health());
}
