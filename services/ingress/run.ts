import { v7 as uuidv7 } from "uuid";
import { concurrently } from "../common/cassandra/parallel.ts";
import { readCollection, readProject, readProjectsOfOwner } from "../common/cassandra/registrations.ts";
import { type Cassandra, connectCassandra } from "../common/cassandra/session.ts";
import { createApp } from "../common/http/app.ts";
import { addressBucket, clientAddress } from "../common/http/client-ip.ts";
import { HttpServer } from "../common/http/server.ts";
import { createKafka } from "../common/kafka/client.ts";
import { createCodec } from "../common/kafka/codec.ts";
import { createProducer } from "../common/kafka/produce/producer.ts";
import { loadTopics } from "../common/kafka/topics.ts";
import type { ServiceContext } from "../common/lifecycle/context.ts";
import { closeRedis, connectRedis, type Redis } from "../common/redis/client.ts";
import { createFindKey } from "./adapters/api-keys.ts";
import { IdempotencyClaims } from "./adapters/idempotency-claims.ts";
import { createDecode, createPublish, createWriteRows } from "./adapters/publishing.ts";
import { createRecoverAddress } from "./adapters/recovery.ts";
import { RefreshLimit } from "./adapters/refresh-limit.ts";
import { createReadMonth, readErrors, readFacts, readProgress } from "./adapters/refresh-reads.ts";
import { countRateDecisions, type RateDecisions, RequestRate } from "./adapters/request-rate.ts";
import type { IngressConfig } from "./config.ts";
import { type AdmissionPorts, admit, type Caller } from "./core/admission.ts";
import { openApiRoute } from "./routes/openapi.ts";
import type { Registrations } from "./routes/ownership.ts";
import { queryingRoutes } from "./routes/querying.ts";
import { requestingRoute } from "./routes/requesting.ts";
import { behindSignature, type SignedRoute } from "./routes/signed.ts";

/** Reads of a list's progress rows at once. */
const readsAtOnce = 32;

/** What the parts of the service share. */
interface Parts {
  readonly config: IngressConfig;
  readonly context: ServiceContext;
  readonly cassandra: Cassandra;
  readonly redis: Redis;
  readonly decisions: RateDecisions;
  readonly registrations: Registrations;
}

/** The owners' HTTP interface: takes refreshes in, and answers what became of them. */
export async function run(config: IngressConfig, context: ServiceContext): Promise<void> {
  const { logger, metrics, clock, health } = context;

  const cassandra = await connectCassandra({
    contactPoints: config.CASSANDRA_CONTACT_POINTS,
    datacenter: config.CASSANDRA_DATACENTER,
    keyspace: config.CASSANDRA_KEYSPACE,
    logger,
    metrics,
    // Somebody waits for the answer.
    maxWaitMs: 2_000,
    requestTimeoutMs: 3_000,
  });
  context.onStop("cassandra", () => cassandra.close());
  health.addReadyCheck("cassandra", () => cassandra.health());

  // No ready check: without Redis the limits are counted otherwise, and the service goes on.
  const redis = await connectRedis({ url: config.REDIS_URL, keyPrefix: config.REDIS_KEY_PREFIX, logger });
  context.onStop("redis", () => closeRedis(redis));

  const registrations: Registrations = {
    readCollection: (collectionAddress) => readCollection(cassandra, collectionAddress),
    readProject: (projectId) => readProject(cassandra, projectId),
    readProjectsOfOwner: (ownerAddress) => readProjectsOfOwner(cassandra, ownerAddress),
  };
  const parts: Parts = { config, context, cassandra, redis, decisions: countRateDecisions(metrics), registrations };
  const admission = createAdmission(parts);
  const signing = {
    recoverAddress: createRecoverAddress(metrics),
    takeForAddress: admission.takeForAddress,
    nowMs: () => clock.nowMs(),
    toleranceSeconds: config.SIGNATURE_TOLERANCE_SECONDS,
  };
  const routes = [await createRequesting(parts), ...createQuerying(parts)].map((route) => behindSignature(route, signing));
  const app = createApp<Caller>({
    routes: [openApiRoute(), ...routes],
    admit: (request) => {
      const address = clientAddress(request.peerAddress, request.headers("x-forwarded-for"), config.TRUSTED_PROXY_COUNT);
      const apiKeys = request.headers("x-api-key");
      return admit({ bucket: addressBucket(address), apiKeys, knownRoute: request.route !== undefined }, admission);
    },
    logger,
    metrics,
    clock,
    load: { requests: config.HTTP_MAX_REQUESTS_UNDER_WAY, bodyBytes: config.HTTP_MAX_BODY_BYTES_HELD },
  });

  const server = new HttpServer(app, {
    maxConnections: config.HTTP_MAX_CONNECTIONS,
    ...(config.TRUSTED_PROXY_COUNT > 0 ? {} : { maxConnectionsPerAddress: config.HTTP_MAX_CONNECTIONS_PER_ADDRESS }),
    logger,
  });
  const port = await server.listen(config.HTTP_HOST, config.HTTP_PORT);
  context.onStop("http", () => server.close());
  logger.info({ port }, "http.listening");
}

function createAdmission({ config, context, cassandra, redis, decisions }: Parts): AdmissionPorts {
  const addressRate = new RequestRate(redis, "address", decisions);
  const projectRate = new RequestRate(redis, "project", decisions);
  return {
    findKey: createFindKey(cassandra, context.clock),
    takeForAddress: (bucket) => addressRate.take(bucket, config.REQUESTS_PER_SECOND_PER_IP),
    takeForProject: ({ projectId, requestsPerSecond }) => projectRate.take(String(projectId), requestsPerSecond),
  };
}

async function createRequesting({ config, context, cassandra, redis, decisions, registrations }: Parts): Promise<SignedRoute> {
  const { logger, metrics, clock, crashPoints } = context;
  const topics = loadTopics({ prefix: config.TOPIC_PREFIX, delays: config.TOPIC_DELAYS_MS });
  const topic = topics.refreshRequested;
  const timeoutMs = config.PUBLISH_TIMEOUT_MS;
  const kafka = createKafka({ brokers: config.KAFKA_BROKERS, clientId: "ingress", requestTimeoutMs: timeoutMs, logger });
  const codec = await createCodec({ registryUrl: config.SCHEMA_REGISTRY_URL, uses: [topic] });
  const producer = await createProducer(kafka, { topics, logger, metrics, requestTimeoutMs: timeoutMs });
  context.onStop("producer", () => producer.close());
  const decode = createDecode(codec, topic);
  const publish = createPublish(producer, { topic, timeoutMs, logger, metrics });
  const writeRows = createWriteRows(cassandra, { clock, logger, retentionSeconds: config.RETENTION_SECONDS });
  return requestingRoute({
    registrations,
    acceptance: {
      limit: new RefreshLimit({ redis, cassandra, decisions, logger }),
      claims: new IdempotencyClaims({ cassandra, clock, logger, ttlSeconds: config.IDEMPOTENCY_TTL_SECONDS, decode }),
      publish: crashPoints.before("before-publish", publish),
      writeRows: crashPoints.before("before-refresh-rows", crashPoints.after("after-refresh-rows", writeRows)),
    },
    newId: uuidv7,
    encode: (record) => codec.encode(topic.name, record),
    nowMs: () => clock.nowMs(),
    deadlineSeconds: config.REFRESH_DEADLINE_SECONDS,
    refreshesPerHour: config.REFRESHES_PER_HOUR,
  });
}

function createQuerying({ config, context, cassandra, registrations }: Parts): SignedRoute[] {
  return queryingRoutes({
    registrations,
    readFacts: (refreshId) => readFacts(cassandra, refreshId),
    readProgress: (refreshId) => readProgress(cassandra, refreshId),
    readManyProgress: (refreshIds) => concurrently(readsAtOnce, refreshIds, (refreshId) => readProgress(cassandra, refreshId)),
    readErrors: (refreshId, page) => readErrors(cassandra, refreshId, page),
    monthReader: (collectionAddress) => createReadMonth(cassandra, collectionAddress),
    nowMs: () => context.clock.nowMs(),
    retentionSeconds: config.RETENTION_SECONDS,
  });
}
