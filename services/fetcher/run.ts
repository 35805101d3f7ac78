import { addressPolicy } from "../common/http/address-guard.ts";
import { createKafka } from "../common/kafka/client.ts";
import { createCodec } from "../common/kafka/codec.ts";
import { createDeadLetters } from "../common/kafka/consume/dead-letters.ts";
import { startWindowConsumer, type WindowConsumer } from "../common/kafka/consume/window-consumer.ts";
import { createProducer } from "../common/kafka/produce/producer.ts";
import { loadTopics } from "../common/kafka/topics.ts";
import type { ServiceContext } from "../common/lifecycle/context.ts";
import type { TokenRefresh } from "../common/messages/records.ts";
import { tokenUrl } from "../common/messages/token-url.ts";
import { BrokerClock, teachBrokerClock } from "../common/retry/broker-clock.ts";
import { probeBrokerClock } from "../common/retry/clock-probe.ts";
import { createAlarm } from "./adapters/alarm.ts";
import { createBurial } from "./adapters/burial.ts";
import { createEndpoints } from "./adapters/endpoints.ts";
import { createMetadataApi } from "./adapters/metadata-api.ts";
import { createOutbox } from "./adapters/outbox.ts";
import { createReports } from "./adapters/reports.ts";
import { createResolver } from "./adapters/resolver.ts";
import type { FetcherConfig } from "./config.ts";
import { withCrashPoints } from "./core/crashing.ts";
import { Pipeline } from "./core/pipeline.ts";
import { AdaptiveScheduler } from "./core/scheduling/adaptive-scheduler.ts";
import type { Work } from "./core/work.ts";

/** Calls the projects' Metadata APIs, token by token, and writes how each token ended. */
export async function run(config: FetcherConfig, context: ServiceContext): Promise<void> {
  const { logger, metrics, clock, health, crashPoints, onStop, fail } = context;
  const topics = loadTopics({ prefix: config.TOPIC_PREFIX, delays: config.TOPIC_DELAYS_MS });
  const groupId = `${config.GROUP_PREFIX}.fetcher`;
  const kafka = createKafka({
    brokers: config.KAFKA_BROKERS,
    clientId: groupId,
    requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
    logger,
  });
  const uses = [topics.tokenRequested, ...topics.retryTiers, topics.tokenOutcome];
  const codec = await createCodec({ registryUrl: config.SCHEMA_REGISTRY_URL, uses });

  const policy = addressPolicy(config);
  const api = createMetadataApi({
    policy,
    resolve: createResolver(config.METADATA_API_DNS_SERVERS),
    clock,
    timeoutMs: config.METADATA_API_TIMEOUT_MS,
    bodyCapBytes: config.BODY_CAP_BYTES,
  });
  onStop("metadata api", async () => api.close());
  metrics.gauge("metadata_fetch_inflight", "Calls to Metadata APIs under way.", {}, (gauge) => gauge.set(api.underWay));

  const brokerClock = new BrokerClock();
  const plainProducer = await createProducer(kafka, {
    topics,
    logger,
    metrics,
    requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
  });
  const producer = teachBrokerClock(plainProducer, brokerClock, clock);
  onStop("producer", () => producer.close());
  await probeBrokerClock(producer, topics, "fetcher");
  const outbox = createOutbox({ producer, codec, topics });
  const deadLetters = createDeadLetters({ producer, topics, metrics, service: "fetcher", groupId });

  const alarm = createAlarm(() => pipeline.proceed());
  const scheduler = new AdaptiveScheduler<Work>({ perQueue: config.FETCH_CONCURRENCY_PER_HOST, total: config.FETCH_CONCURRENCY });
  metrics.gauge("host_queue_records", "Records that wait for their turn to be called.", {}, (gauge) =>
    gauge.set(scheduler.waiting),
  );
  metrics.gauge("host_concurrency_limit", "Calls at once that the hosts with work are taken to stand, in sum.", {}, (gauge) =>
    gauge.set(scheduler.hosts(clock.monotonicMs()).concurrency),
  );
  metrics.gauge("host_backoff_active", "Hosts with work that are left alone for a while.", {}, (gauge) =>
    gauge.set(scheduler.hosts(clock.monotonicMs()).asleep),
  );
  const overflowPauses = metrics.counter("overflow_pauses_total", "Partitions that waited for a queue with too much in it.", {});
  // Set before the first record comes: nothing is handed out until the assignment has been looked up at the broker.
  let consumer: WindowConsumer | undefined;
  const pipeline = new Pipeline({
    scheduler,
    rules: { maxAttempts: config.MAX_ATTEMPTS, tiers: topics.retryTiers },
    clock,
    ports: {
      ...withCrashPoints(
        {
          call: (refresh, { origin, url }, mayStart) =>
            api.call(
              { projectId: refresh.project_id, origin, path: tokenUrl(url, refresh.token_id).slice(origin.length) },
              mayStart,
            ),
          deliver: (conclusion, wanted) => outbox.deliver(conclusion, wanted),
        },
        crashPoints,
      ),
      move: (refreshes, tier, wanted) => outbox.move(refreshes, tier, wanted),
      bury: createBurial(deadLetters, codec),
      finish: (position) => consumer?.finish(position),
      mayAct: (partition) => consumer?.mayAct(partition) ?? false,
      windowRecords: config.WINDOW_RECORDS,
      pause(partition) {
        overflowPauses.inc();
        consumer?.pause(partition);
      },
      resume: (partition) => consumer?.resume(partition),
      windowFull: () => consumer?.full ?? false,
      hasRoom: () => api.heldBytes + outbox.pendingBytes < config.WINDOW_BYTES,
      endpointOf: createEndpoints(policy),
      wakeAfter: (delayMs) => alarm.set(delayMs),
      report: createReports({ logger, metrics, tiers: topics.retryTiers, maxAttempts: config.MAX_ATTEMPTS }),
      fail,
    },
  });

  consumer = await startWindowConsumer<TokenRefresh>(kafka, {
    groupId,
    main: topics.tokenRequested,
    tiers: topics.retryTiers,
    codec,
    deadLetters,
    brokerClock,
    logger,
    metrics,
    clock,
    timing: {
      sessionTimeoutMs: config.SESSION_TIMEOUT_MS,
      rebalanceTimeoutMs: config.REBALANCE_TIMEOUT_MS,
      heartbeatIntervalMs: config.HEARTBEAT_INTERVAL_MS,
      requestTimeoutMs: config.KAFKA_REQUEST_TIMEOUT_MS,
    },
    onRecords: (records) => pipeline.take(records),
    onLost: (partitions) => pipeline.lost(partitions),
    fail,
    budget: { records: config.WINDOW_RECORDS, bytes: config.WINDOW_BYTES },
  });
  const started = consumer;
  onStop("consumer", async () => {
    started.pauseAll();
    await pipeline.stop();
    alarm.clear();
    await started.stop();
  });
  health.addReadyCheck("kafka", () => started.health());
}
