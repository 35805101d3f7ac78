import { randomUUID } from "node:crypto";
import type { Consumer, Kafka } from "kafkajs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import { microsFromMs } from "../../services/common/clock.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import type { RefreshRequested, RefreshWatchdog, TokenOutcome, TokenRefresh } from "../../services/common/messages/records.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { parse } from "../../services/splitter/config.ts";
import { run } from "../../services/splitter/run.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { type ReadRecord, readTopic, type TopicReader } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";
import { bitmapOf, refreshOf } from "../unit/splitter/refreshes.ts";

const watchdogDelayMs = 400;
const hourMicros = 3_600 * 1_000_000;

let environment: TestEnvironment;
let kafka: Kafka;
let codec: Codec;
let producer: RecordProducer;
let cassandra: Cassandra;
let requested: TopicReader<TokenRefresh>;
let outcomes: TopicReader<TokenOutcome>;
let checks: TopicReader<RefreshWatchdog>;
let deadLetters: TopicReader<Buffer>;
let service: TestServiceContext;

beforeAll(async () => {
  environment = await createEnvironment("splitter", { delays: `watchdog-1h=${watchdogDelayMs}` });
  const { env, topics } = environment;
  const logger = createLogger("test", "silent");
  kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs: 5_000, logger });
  const registryUrl = env.SCHEMA_REGISTRY_URL ?? "";
  [codec, producer, cassandra, requested, outcomes, checks, deadLetters] = await Promise.all([
    createCodec({ registryUrl, uses: [topics.refreshRequested, topics.watchdog, topics.tokenOutcome] }),
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
    readTopic<Buffer>(env, topics.deadLetter.name),
  ]);
});

afterAll(async () => {
  await Promise.all([requested, outcomes, checks, deadLetters].map((reader) => reader?.close()));
  await Promise.all([producer?.close(), cassandra?.close()]);
  await environment?.close();
});

beforeEach(async () => {
  const parsed = parse(environment.env);
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  service = createServiceContext("splitter");
  await run(parsed.config, service);
});

afterEach(async () => {
  await service.stop();
  expect(service.failures).toEqual([]);
});

/** A refresh of now, of a project and a collection that no other test has. */
function freshRefresh(change: Partial<RefreshRequested> = {}): RefreshRequested {
  const requestedAt = microsFromMs(Date.now());
  return refreshOf({
    refresh_id: randomUUID(),
    project_id: Math.floor(Math.random() * 2 ** 40),
    collection_address: `0x${randomUUID().replaceAll("-", "")}00000000`,
    requested_at: requestedAt,
    deadline: requestedAt + 48 * hourMicros,
    ...change,
  });
}

async function send(refresh: RefreshRequested): Promise<void> {
  const topic = environment.topics.refreshRequested.name;
  await producer.deliver([{ topic, key: refresh.refresh_id, value: codec.encode(topic, refresh) }]);
}

async function registerTokens({ collection_address }: RefreshRequested, tokenIds: readonly string[]): Promise<void> {
  const query = "INSERT INTO tokens (collection_address, bucket, token_id, registered_at) VALUES (?, ?, ?, ?)";
  for (const tokenId of tokenIds) await cassandra.write(query, [collection_address, bucketOf(tokenId), tokenId, 1]);
}

/** As the aggregator would have left it. */
async function writeProgress({ refresh_id, token_ids }: RefreshRequested, ordinals: readonly number[]): Promise<void> {
  const done = bitmapOf(token_ids.length, ordinals);
  await cassandra.write("INSERT INTO refresh_progress (refresh_id, total, done) VALUES (?, ?, ?)", [
    refresh_id,
    token_ids.length,
    done,
  ]);
}

/** Stands for a group behind the splitter: takes everything and commits it. */
async function startGroup(name: "fetcher" | "aggregator", topics: readonly string[]): Promise<Consumer> {
  const consumer = kafka.consumer({ groupId: `${environment.env.GROUP_PREFIX}.${name}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({ autoCommitThreshold: 1, eachMessage: async () => undefined });
  return consumer;
}

const of = <T extends { refresh_id: string }>(records: readonly ReadRecord<T>[], { refresh_id }: RefreshRequested) =>
  records.filter(({ value }) => value.refresh_id === refresh_id);
const checksOf = (records: readonly ReadRecord<RefreshWatchdog>[], { refresh_id }: RefreshRequested) =>
  records.filter(({ value }) => value.refresh.refresh_id === refresh_id).map(({ value }) => value);

const untilRequested = (refresh: RefreshRequested, count: number) =>
  requested.until(`${count} tokens of the refresh`, (records) => of(records, refresh).length >= count);
const untilChecked = (refresh: RefreshRequested, check: number) =>
  checks.until(`check ${check}`, (records) => checksOf(records, refresh).some((record) => record.check === check));

describe("an accepted refresh", () => {
  it("becomes one record per known token, in order, on its project's partition, and an outcome per unknown one", async () => {
    const tokenIds = [...Array.from({ length: 300 }, (_, index) => String(index * 7)), (2n ** 256n - 1n).toString()];
    const refresh = freshRefresh({ token_ids: tokenIds });
    const known = tokenIds.filter((_, ordinal) => ordinal % 10 !== 3);
    await registerTokens(refresh, known);
    await send(refresh);
    await untilRequested(refresh, known.length);
    await outcomes.until("the unknown ones", (records) => of(records, refresh).length === tokenIds.length - known.length);
    await untilChecked(refresh, 1);

    const tokens = of(requested.records, refresh);
    expect(tokens.map(({ value }) => value.token_id)).toEqual(known);
    expect(new Set(tokens.map(({ partition }) => partition)).size).toBe(1);
    expect(new Set(tokens.map(({ key }) => key))).toEqual(new Set([String(refresh.project_id)]));
    expect(tokens[0]?.value).toMatchObject({ ordinal: 0, total: 301, emission: 1, attempt: 1, attempts: [] });
    const unknown = of(outcomes.records, refresh);
    expect(unknown.map(({ value }) => value.ordinal)).toEqual(
      tokenIds.flatMap((_, ordinal) => (ordinal % 10 === 3 ? [ordinal] : [])),
    );
    expect(unknown[0]).toMatchObject({
      key: refresh.collection_address,
      value: { error_code: "token_not_found", created_at: refresh.requested_at, url: `${refresh.metadata_api_url}/21` },
    });
    expect(checksOf(checks.records, refresh)[0]).toEqual({ check: 1, emission: 1, refresh });
  });

  it("has its rows before its tokens are on their way, whatever ingress managed to write", async () => {
    const refresh = freshRefresh({ token_policy: "open" });
    await send(refresh);
    await untilRequested(refresh, 3);
    const [row] = await cassandra.read("SELECT project_id, total, requested_at FROM refreshes WHERE refresh_id = ?", [
      refresh.refresh_id,
    ]);
    expect(row).toEqual({ project_id: BigInt(refresh.project_id), total: 3, requested_at: BigInt(refresh.requested_at) });
    const [tokens] = await cassandra.read("SELECT token_ids FROM refresh_tokens WHERE refresh_id = ?", [refresh.refresh_id]);
    expect(tokens?.token_ids).toEqual(refresh.token_ids);
  });

  it("that comes again asks only for what has no outcome, and for nothing when it is complete", async () => {
    const half = freshRefresh({ token_policy: "open" });
    const complete = freshRefresh({ token_policy: "open" });
    await writeProgress(half, [0, 2]);
    await writeProgress(complete, [0, 1, 2]);
    await send(complete);
    await send(half);
    // One record behind each of the two on every partition: what they led to is there when these have arrived.
    const later = Array.from({ length: 24 }, () => freshRefresh({ token_policy: "open", token_ids: ["1"] }));
    await Promise.all(later.map(send));
    for (const refresh of later) await untilRequested(refresh, 1);
    expect(of(requested.records, half).map(({ value }) => value.ordinal)).toEqual([1]);
    expect(of(requested.records, complete)).toEqual([]);
    expect(checksOf(checks.records, complete)).toEqual([]);
  });

  it("that makes no sense goes to the dead letters, and the one behind it is split", async () => {
    const bad = freshRefresh({ token_ids: [] });
    const key = "the same partition";
    const topic = environment.topics.refreshRequested.name;
    const good = freshRefresh({ token_policy: "open" });
    await producer.deliver([
      { topic, key, value: codec.encode(topic, bad) },
      { topic, key, value: Buffer.from("no Avro") },
      { topic, key, value: codec.encode(topic, good) },
    ]);
    await untilRequested(good, 3);
    await deadLetters.until("both", (records) => records.length >= 2);
    expect(deadLetters.records.map(({ bytes }) => bytes)).toEqual(
      expect.arrayContaining([codec.encode(topic, bad), Buffer.from("no Avro")]),
    );
  });
});

describe("the watchdog", () => {
  it("emits nothing again while the groups behind are not through, then what is missing, twice at most", async () => {
    const refresh = freshRefresh({ token_policy: "open" });
    await writeProgress(refresh, [1]);
    await send(refresh);
    await untilChecked(refresh, 3);
    expect(of(await requested.caughtUp(), refresh)).toHaveLength(2);

    const { topics } = environment;
    const fetchTopics = [topics.tokenRequested, ...topics.retryTiers].map(({ name }) => name);
    const groups = await Promise.all([startGroup("fetcher", fetchTopics), startGroup("aggregator", [topics.tokenOutcome.name])]);
    onTestFinished(async () => void (await Promise.all(groups.map((group) => group.disconnect()))));
    await untilRequested(refresh, 6);
    const last = Math.max(...checksOf(checks.records, refresh).map(({ check }) => check));
    await untilChecked(refresh, last + 3);
    const emitted = of(await requested.caughtUp(), refresh).map(({ value }) => [value.emission, value.ordinal]);
    expect(emitted).toEqual([
      [1, 0],
      [1, 2],
      [2, 0],
      [2, 2],
      [3, 0],
      [3, 2],
    ]);
  });

  it("waits out its delay, counted from the append time, before each check", async () => {
    const refresh = freshRefresh({ token_policy: "open" });
    await send(refresh);
    await untilChecked(refresh, 3);
    const times = checks.records
      .filter(({ value }) => value.refresh.refresh_id === refresh.refresh_id)
      .map(({ timestampMs }) => timestampMs);
    const waits = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(watchdogDelayMs);
  });

  it("ends its chain when the refresh is complete", async () => {
    const ending = freshRefresh({ token_policy: "open" });
    await send(ending);
    await untilChecked(ending, 1);
    await writeProgress(ending, [0, 1, 2]);
    const seen = checksOf(await checks.caughtUp(), ending).length;
    const other = freshRefresh({ token_policy: "open" });
    await send(other);
    await untilChecked(other, 4);
    // The one check that was waiting when the progress was written may have planned one more.
    expect(checksOf(await checks.caughtUp(), ending).length).toBeLessThanOrEqual(seen + 1);
    await waitFor(
      "its end to be counted",
      async () => (await service.metrics.text()).body,
      (body) => body.includes('action="completed"'),
    );
  });

  it("closes what is left an hour after the deadline, dated by the record", async () => {
    const deadline = microsFromMs(Date.now()) - 2 * hourMicros;
    const refresh = freshRefresh({ token_policy: "open", deadline, requested_at: deadline - 48 * hourMicros });
    await writeProgress(refresh, [0]);
    await send(refresh);
    await outcomes.until("the closing outcomes", (records) => of(records, refresh).length >= 2);
    const closing = of(outcomes.records, refresh).slice(0, 2);
    expect(closing.map(({ value }) => [value.ordinal, value.error_code, value.error_detail, value.created_at])).toEqual([
      [1, "unable_to_retrieve_metadata", "deadline_exceeded", deadline + hourMicros],
      [2, "unable_to_retrieve_metadata", "deadline_exceeded", deadline + hourMicros],
    ]);
  });

  it("lets a forked chain die out", async () => {
    const refresh = freshRefresh({ token_policy: "open" });
    const topic = environment.topics.watchdog.name;
    const record = { topic, key: refresh.refresh_id, value: codec.encode(topic, { check: 1, emission: 1, refresh }) };
    await producer.deliver([record, record, record]);
    await untilChecked(refresh, 4);
    const numbers = checksOf(checks.records, refresh).map(({ check }) => check);
    expect(numbers.filter((check) => check <= 4)).toEqual([1, 1, 1, 2, 3, 4]);
  });
});
