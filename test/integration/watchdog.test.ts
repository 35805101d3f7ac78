import { randomInt, randomUUID } from "node:crypto";
import type { Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parse as parseAggregator } from "../../services/aggregator/config.ts";
import { run as runAggregator } from "../../services/aggregator/run.ts";
import { type Cassandra, connectCassandra, type Row } from "../../services/common/cassandra/session.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { readStoredAttempts } from "../../services/common/messages/attempt-history.ts";
import type {
  RefreshCompleted,
  RefreshRequested,
  RefreshWatchdog,
  TokenOutcome,
  TokenRefresh,
} from "../../services/common/messages/records.ts";
import { parse as parseFetcher } from "../../services/fetcher/config.ts";
import { run as runFetcher } from "../../services/fetcher/run.ts";
import { recordOf } from "../../services/ingress/core/record.ts";
import { parse as parseSplitter } from "../../services/splitter/config.ts";
import { run as runSplitter } from "../../services/splitter/run.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { type MetadataApi, startMetadataApi } from "../support/metadata-api.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { type ReadRecord, readTopic, type TopicReader } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";

const watchdogMs = 400;
/** Served by Retry-After: 2, and longer than several checks. */
const longTierMs = 8_000;
const hourMicros = 3_600 * 1_000_000;
const withinMs = 45_000;

let environment: TestEnvironment;
let kafka: Kafka;
let codec: Codec;
let producer: RecordProducer;
let cassandra: Cassandra;
let api: MetadataApi;
let requested: TopicReader<TokenRefresh>;
let outcomes: TopicReader<TokenOutcome>;
let checks: TopicReader<RefreshWatchdog>;
let completions: TopicReader<RefreshCompleted>;
const running: TestServiceContext[] = [];

beforeAll(async () => {
  const delays = `watchdog-1h=${watchdogMs},retry-2s=100,retry-10s=200,retry-60s=${longTierMs}`;
  environment = await createEnvironment("watchdog", { delays });
  const { env, topics } = environment;
  const logger = createLogger("test", "silent");
  kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs: 5_000, logger });
  [codec, producer, cassandra, requested, outcomes, checks, completions] = await Promise.all([
    createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses: [topics.refreshRequested] }),
    createProducer(kafka, { topics, logger, requestTimeoutMs: 5_000 }),
    connectCassandra({
      contactPoints: [env.CASSANDRA_CONTACT_POINTS ?? ""],
      datacenter: env.CASSANDRA_DATACENTER ?? "",
      keyspace: env.CASSANDRA_KEYSPACE ?? "",
      logger,
    }),
    readTopic<TokenRefresh>(env, topics.tokenRequested.name),
    readTopic<TokenOutcome>(env, topics.tokenOutcome.name),
    readTopic<RefreshWatchdog>(env, topics.watchdog.name),
    readTopic<RefreshCompleted>(env, topics.refreshCompleted.name),
  ]);
});

afterAll(async () => {
  await Promise.all([requested, outcomes, checks, completions].map((reader) => reader?.close()));
  await Promise.all([producer?.close(), cassandra?.close()]);
  await environment?.close();
});

beforeEach(async () => {
  api = await startMetadataApi();
});
afterEach(async () => {
  const services = running.splice(0);
  await Promise.all(services.map((service) => service.stop()));
  await api.close();
  expect(services.flatMap(({ failures }) => failures)).toEqual([]);
});

const services = {
  splitter: (context: TestServiceContext) => runSplitter(config(parseSplitter(environment.env)), context),
  fetcher: (context: TestServiceContext) => runFetcher(config(parseFetcher(environment.env)), context),
  aggregator: (context: TestServiceContext) => runAggregator(config(parseAggregator(environment.env)), context),
};

function config<C>(parsed: { ok: true; config: C } | { ok: false; problems: readonly string[] }): C {
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  return parsed.config;
}

async function start(...names: readonly (keyof typeof services)[]): Promise<TestServiceContext[]> {
  const contexts = names.map((name) => createServiceContext(name, { logLevel: "info" }));
  running.push(...contexts);
  await Promise.all(names.map((name, index) => services[name](contexts[index] as TestServiceContext)));
  return contexts;
}

interface RefreshOptions {
  readonly nowMs?: number;
  readonly deadlineSeconds?: number;
  readonly maxConcurrency?: number;
  /** The project and the collection of this one. */
  readonly like?: RefreshRequested;
}

/** As ingress makes it with this REFRESH_DEADLINE_SECONDS; without `like` of a project and a collection that no other test has. */
function refreshOf(tokenIds: readonly string[], options: RefreshOptions = {}): RefreshRequested {
  const { nowMs = Date.now(), deadlineSeconds = 48 * 3_600, maxConcurrency = null, like } = options;
  const collection = {
    collectionAddress: like?.collection_address ?? `0x${randomUUID().replaceAll("-", "")}00000000`,
    projectId: like?.project_id ?? randomInt(2 ** 40),
    metadataApiUrl: api.url,
    tokenPolicy: "open" as const,
    maxConcurrency,
    maxRequestsPerSecond: null,
    createdAt: 0,
  };
  return recordOf(randomUUID(), { collection, tokenIds }, { nowMs, deadlineSeconds });
}

const tokens = (count: number) => Array.from({ length: count }, (_, index) => String(index + 1));

async function send(refresh: RefreshRequested): Promise<void> {
  const topic = environment.topics.refreshRequested.name;
  await producer.deliver([{ topic, key: refresh.refresh_id, value: codec.encode(topic, refresh) }]);
}

const of = <T extends { refresh_id: string }>(records: readonly ReadRecord<T>[], { refresh_id }: RefreshRequested) =>
  records.filter(({ value }) => value.refresh_id === refresh_id);
const checksOf = ({ refresh_id }: RefreshRequested) =>
  checks.records.filter(({ key }) => key === refresh_id).map(({ value }) => value);
const untilChecked = (refresh: RefreshRequested, check: number) =>
  checks.until(`check ${check}`, () => checksOf(refresh).some((record) => record.check >= check), { withinMs });

/** What a log that lost them does: the group goes on behind the first `count` records of the refresh. */
async function lose<T extends { refresh_id: string }>(
  group: "fetcher" | "aggregator",
  reader: TopicReader<T>,
  refresh: RefreshRequested,
  count: number,
) {
  const [first] = of(reader.records, refresh);
  const { topics, env } = environment;
  const topic = (group === "fetcher" ? topics.tokenRequested : topics.tokenOutcome).name;
  const admin = kafka.admin();
  await admin.connect();
  const partitions = [{ partition: first?.partition ?? 0, offset: String((first?.offset ?? 0) + count) }];
  await admin.setOffsets({ groupId: `${env.GROUP_PREFIX}.${group}`, topic, partitions });
  await admin.disconnect();
}

/** Its one completion: its chain of checks ends, and what goes the same way behind it finds no other. */
async function completed(refresh: RefreshRequested): Promise<RefreshCompleted> {
  await completions.until("its completion", (records) => of(records, refresh).length > 0, { withinMs });
  const ended = () =>
    running.flatMap(({ logs }) => logs.filter((line) => line.refresh_id === refresh.refresh_id && line.action === "completed"));
  await waitFor("the end of its chain", ended, (lines) => lines.length > 0, { withinMs });
  const later = refreshOf(["1000"], { like: refresh });
  await send(later);
  await completions.until("a later one", (records) => of(records, later).length > 0, { withinMs });
  expect(of(completions.records, refresh)).toHaveLength(1);
  return of(completions.records, refresh)[0]?.value as RefreshCompleted;
}

const emissionsOf = (refresh: RefreshRequested) =>
  of(requested.records, refresh).map(({ value }) => [value.emission, value.ordinal]);
const callCounts = (refresh: RefreshRequested) => refresh.token_ids.map((tokenId) => api.callsOf(tokenId).length);
const errorsOf = ({ refresh_id }: RefreshRequested): Promise<Row[]> =>
  cassandra.read("SELECT ordinal, error_code, error_detail, created_at, attempts FROM refresh_errors WHERE refresh_id = ?", [
    refresh_id,
  ]);

describe("what is lost", () => {
  it("on its way to the fetcher is emitted again, and only that: every token is called once", async () => {
    await start("splitter", "aggregator");
    const refresh = refreshOf(tokens(8));
    await send(refresh);
    await requested.until("its tokens", (records) => of(records, refresh).length === 8);
    await lose("fetcher", requested, refresh, 5);
    await start("fetcher");
    expect(await completed(refresh)).toMatchObject({ succeeded: 8, failed: 0 });
    expect(emissionsOf(refresh)).toEqual([
      ...[0, 1, 2, 3, 4, 5, 6, 7].map((ordinal) => [1, ordinal]),
      ...[0, 1, 2, 3, 4].map((ordinal) => [2, ordinal]),
    ]);
    const perToken = Map.groupBy(of(outcomes.records, refresh), ({ value }) => value.ordinal);
    expect([...perToken.values()].map((all) => all.length)).toEqual(Array.from({ length: 8 }, () => 1));
  });

  it("on its way to the aggregator is called again, and counts once", async () => {
    await start("splitter", "fetcher");
    const refresh = refreshOf(tokens(6));
    await send(refresh);
    await outcomes.until("its outcomes", (records) => of(records, refresh).length === 6, { withinMs });
    const inLog = of(outcomes.records, refresh).map(({ value }) => value.ordinal);
    await lose("aggregator", outcomes, refresh, 4);
    const lost = inLog.slice(0, 4).toSorted((a, b) => a - b);
    await start("aggregator");
    expect(await completed(refresh)).toMatchObject({ total: 6, succeeded: 6, failed: 0 });
    expect(emissionsOf(refresh).slice(6)).toEqual(lost.map((ordinal) => [2, ordinal]));
    expect(callCounts(refresh)).toEqual([0, 1, 2, 3, 4, 5].map((ordinal) => (lost.includes(ordinal) ? 2 : 1)));
  });
});

describe("a host that is honestly slow", () => {
  it.each([
    ["has a token wait for longer than many checks", ["1"], { status: 503, retryAfter: 2 }, [2, 1, 1, 1]],
    ["takes long for each of its calls", tokens(4), { delayMs: 2_000 }, [1, 1, 1, 1]],
  ])("%s, and nothing is emitted a second time", async (_what, slow, first, calls) => {
    await start("splitter", "fetcher", "aggregator");
    const refresh = refreshOf(tokens(4), { maxConcurrency: 1 });
    for (const tokenId of slow) api.script(tokenId, [first, {}]);
    await send(refresh);
    await completions.until("its completion", (records) => of(records, refresh).length > 0, { withinMs });
    expect(callCounts(refresh)).toEqual(calls);
    expect(Math.max(...checksOf(refresh).map(({ check }) => check))).toBeGreaterThanOrEqual(3);
    expect(await completed(refresh)).toMatchObject({ succeeded: 4, failed: 0 });
    expect(emissionsOf(refresh).map(([emission]) => emission)).toEqual([1, 1, 1, 1]);
    expect(new Set(checksOf(refresh).map(({ emission }) => emission))).toEqual(new Set([1]));
  });
});

describe("a refresh whose time runs out", () => {
  it("is closed by its own records, without another call, and dated by its deadline", async () => {
    await start("splitter", "fetcher", "aggregator");
    const refresh = refreshOf(tokens(3), { deadlineSeconds: 2 });
    for (const tokenId of refresh.token_ids) api.script(tokenId, [{ status: 503, retryAfter: 2 }]);
    await send(refresh);
    await completions.until("its completion", (records) => of(records, refresh).length > 0, { withinMs });
    const calls = callCounts(refresh);
    expect(Math.max(...calls)).toBeLessThanOrEqual(1);
    expect(await completed(refresh)).toMatchObject({ failed: 3, completed_at: refresh.deadline });
    const errors = await errorsOf(refresh);
    expect(errors.map((row) => [row.ordinal, row.error_code, row.error_detail, row.created_at])).toEqual(
      [2, 1, 0].map((ordinal) => [ordinal, "unable_to_retrieve_metadata", "deadline_exceeded", BigInt(refresh.deadline)]),
    );
    for (const row of errors) {
      const attempts = readStoredAttempts(row.attempts);
      expect(attempts.map(({ status, next }) => [status, next])).toEqual(
        Array.from({ length: calls[Number(row.ordinal)] ?? 0 }, () => [503, "deadline_exceeded"]),
      );
    }
  });

  it("and whose tokens are lost is closed by the watchdog an hour later, through the same path", async () => {
    await start("splitter");
    const refresh = refreshOf(tokens(3), { nowMs: Date.now() - 3 * 3_600_000, deadlineSeconds: 3_600 });
    await send(refresh);
    await requested.until("its tokens", (records) => of(records, refresh).length === 3);
    await lose("fetcher", requested, refresh, 3);
    await outcomes.until("the closing outcomes", (records) => of(records, refresh).length >= 3, { withinMs });
    await start("aggregator", "fetcher");
    const closedAt = refresh.deadline + hourMicros;
    expect(await completed(refresh)).toMatchObject({ failed: 3, completed_at: closedAt });
    expect((await errorsOf(refresh)).map((row) => [row.error_detail, row.created_at, row.attempts])).toEqual(
      Array.from({ length: 3 }, () => ["deadline_exceeded", BigInt(closedAt), "[]"]),
    );
    expect(emissionsOf(refresh)).toHaveLength(3);
  });
});

it("a chain that a redelivered refresh forked dies out, in the splitter that made its checks and in one that did not", async () => {
  const [first] = await start("splitter");
  const refresh = refreshOf(tokens(1));
  await send(refresh);
  await untilChecked(refresh, 3);
  await send(refresh);
  await untilChecked(refresh, 6);
  const numbersOf = () => checksOf(refresh).map(({ check }) => check);
  // The fork's first check is written by the split, and dropped when it is due: in one partition records take turns.
  const beyond = numbersOf().filter((check) => check > 1);
  expect(beyond).toEqual([...new Set(beyond)]);
  expect(numbersOf().filter((check) => check === 1)).toHaveLength(2);

  await first?.stop();
  expect(running.splice(0).flatMap(({ failures }) => failures)).toEqual([]);
  const last = Math.max(...numbersOf());
  const [second] = await start("splitter");
  await send(refresh);
  // The fork walks behind the chain, and ends where the new splitter has made the check already.
  await untilChecked(refresh, 2 * last + 4);
  const behind = numbersOf().filter((check) => check > last + 1 && check <= 2 * last + 3);
  expect(behind).toEqual(Array.from({ length: last + 2 }, (_, index) => last + 2 + index));
  expect(numbersOf().filter((check) => check === 2)).toHaveLength(2);
  const { body = "" } = (await second?.metrics.text()) ?? {};
  expect(body).toMatch(/splitter_watchdog_checks_total\{action="repeated",service="splitter"\} [1-9]\n/);
});
