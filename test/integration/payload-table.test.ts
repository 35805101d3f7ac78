import { randomUUID } from "node:crypto";
import { type Admin, type Consumer, type IHeaders, Kafka, type KafkaMessage, logLevel, type Producer } from "kafkajs";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as aggregator from "../../services/aggregator/config.ts";
import { run as runAggregator } from "../../services/aggregator/run.ts";
import { microsFromMs } from "../../services/common/clock.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec } from "../../services/common/kafka/contracts.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import type { TopicDefinition, Topics } from "../../services/common/kafka/topics.ts";
import type { RefreshCompleted, RefreshRequested, TokenOutcome, TokenRefresh } from "../../services/common/messages/records.ts";
import * as fetcher from "../../services/fetcher/config.ts";
import { run as runFetcher } from "../../services/fetcher/run.ts";
import * as splitter from "../../services/splitter/config.ts";
import { run as runSplitter } from "../../services/splitter/run.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { type MetadataApi, startMetadataApi } from "../support/metadata-api.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { readTopic, type TopicReader } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";
import { refreshOf } from "../unit/splitter/refreshes.ts";

let environment: TestEnvironment;
let topics: Topics;
let api: MetadataApi;
let codec: Codec;
let admin: Admin;
let raw: Producer;
let completions: TopicReader<RefreshCompleted>;
let letters: Consumer;
const deadLetters: KafkaMessage[] = [];
const services: TestServiceContext[] = [];

beforeAll(async () => {
  environment = await createEnvironment("payloads", { delays: "retry-2s=200,watchdog-1h=300" });
  topics = environment.topics;
  const { env } = environment;
  const kafka = new Kafka({ brokers: (env.KAFKA_BROKERS ?? "").split(","), clientId: "payloads", logLevel: logLevel.NOTHING });
  admin = kafka.admin();
  raw = kafka.producer({
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  const uses = [
    topics.refreshRequested,
    topics.watchdog,
    topics.tokenRequested,
    ...topics.retryTiers,
    topics.tokenOutcome,
    topics.tokenState,
  ];
  letters = kafka.consumer({ groupId: `${environment.name}-letters`, maxWaitTimeInMs: 100 });
  [api, codec, completions] = await Promise.all([
    startMetadataApi(),
    createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses }),
    readTopic<RefreshCompleted>(env, topics.refreshCompleted.name),
    admin.connect(),
    raw.connect(),
    letters.connect(),
  ]);
  // As bytes: what lies there need not be Avro.
  await letters.subscribe({ topic: topics.deadLetter.name, fromBeginning: true });
  await letters.run({ eachMessage: async ({ message }) => void deadLetters.push(message) });
  await Promise.all([
    start("splitter", splitter.parse(env), runSplitter),
    start("fetcher", fetcher.parse(env), runFetcher),
    start("aggregator", aggregator.parse(env), runAggregator),
  ]);
});

afterAll(async () => {
  await Promise.all(services.map((service) => service.stop()));
  await Promise.all([completions?.close(), letters?.disconnect(), raw?.disconnect(), admin?.disconnect(), api?.close()]);
  await environment?.close();
});

async function start<C>(
  name: string,
  parsed: { ok: true; config: C } | { ok: false; problems: readonly string[] },
  run: (config: C, context: TestServiceContext) => Promise<void>,
): Promise<void> {
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  const service = createServiceContext(name);
  services.push(service);
  await run(parsed.config, service);
}

/** A refresh of one token that exists in no table. */
function refresh(change: Partial<RefreshRequested> = {}): RefreshRequested {
  const requestedAt = microsFromMs(Date.now());
  return refreshOf({
    refresh_id: randomUUID(),
    project_id: 1 + Math.floor(Math.random() * 2 ** 40),
    collection_address: `0x${randomUUID().replaceAll("-", "")}00000000`,
    token_ids: ["7"],
    token_policy: "open",
    metadata_api_url: api.url,
    requested_at: requestedAt,
    deadline: requestedAt + 48 * 3_600 * 1_000_000,
    max_concurrency: null,
    ...change,
  });
}

function tokenOf(whole: RefreshRequested, change: Partial<TokenRefresh> = {}): TokenRefresh {
  const { token_ids, token_policy: _policy, ...common } = whole;
  const place = { ordinal: 0, total: 1, token_id: token_ids[0] ?? "" };
  return { ...common, ...place, emission: 1, attempt: 1, first_queued_at: whole.requested_at, attempts: [], ...change };
}

function outcomeOf(whole: RefreshRequested, change: Partial<TokenOutcome> = {}): TokenOutcome {
  const { refresh_id, project_id, collection_address, requested_at } = whole;
  const place = { ordinal: 0, total: 1, token_id: whole.token_ids[0] ?? "", emission: 1, created_at: requested_at, attempts: [] };
  const good = { status_code: 200, metadata: "{}", content_hash: "ab".repeat(32) };
  const failure = { error_code: null, error_detail: null, response_body: null };
  return {
    refresh_id,
    project_id,
    collection_address,
    requested_at,
    ...place,
    url: `${api.url}/7`,
    ...good,
    ...failure,
    ...change,
  };
}

interface Message {
  readonly key: string | Buffer | null;
  readonly value: Buffer | null;
  readonly headers?: IHeaders;
}

interface Row {
  readonly name: string;
  readonly message: Message;
  readonly cause: "undecodable" | "unknown_schema" | "rejected";
}

/** What no schema helps against, of any topic. `good`: a record that would be processed. */
function foreignRows(good: Message & { readonly value: Buffer }): Row[] {
  const { key, value } = good;
  const unknownSchema = Buffer.from(value);
  unknownSchema.writeInt32BE(2 ** 31 - 1, 1);
  const state = {
    collection_address: "0x1",
    token_id: "1",
    version: 1,
    content_hash: "",
    metadata: "",
    refresh_id: "",
    refreshed_at: 1,
  };
  const rows: [string, Message, Row["cause"]][] = [
    ["K1 empty", { key, value: Buffer.alloc(0) }, "undecodable"],
    ["K2 a tombstone", { key, value: null }, "undecodable"],
    ["K3 JSON", { key, value: Buffer.from('{"refresh_id":"1"}') }, "undecodable"],
    ["K3 a half", { key, value: value.subarray(0, value.length - 4) }, "undecodable"],
    ["K4 a schema nobody knows", { key, value: unknownSchema }, "unknown_schema"],
    ["K5 another topic's record", { key, value: codec.encode(topics.tokenState.name, state) }, "undecodable"],
    ["K9 1.5 MB", { key, value: Buffer.alloc(1_500_000, "x") }, "undecodable"],
    ["K10 a header of 900 KB", { key, value: Buffer.from("?"), headers: { big: Buffer.alloc(900_000, "x") } }, "undecodable"],
    ["K11 a key that is no UTF-8", { key: Buffer.from([0xff, 0xfe, 0x00]), value }, "undecodable"],
    ["K11 no key", { key: null, value }, "undecodable"],
  ];
  return rows.map(([name, message, cause]) => ({ name, message, cause }));
}

interface Table {
  readonly topic: TopicDefinition;
  readonly group: "splitter" | "fetcher" | "aggregator";
  /** Its completion shows that the partition moved on. */
  readonly whole: RefreshRequested;
  readonly key: string;
  readonly good: unknown;
  /** By row: a record of the topic's own schema that makes no sense. */
  readonly senseless: Readonly<Record<string, unknown>>;
}

const tables: Readonly<Record<string, () => Table>> = {
  "refresh.requested": () => {
    const whole = refresh();
    return {
      topic: topics.refreshRequested,
      group: "splitter",
      whole,
      key: whole.refresh_id,
      good: whole,
      senseless: {
        "K6 no refresh id": refresh({ refresh_id: "" }),
        "K12 a negative time": refresh({ deadline: -1 }),
        "K13 a token beyond 256 bits": refresh({ token_ids: [(2n ** 256n).toString()] }),
      },
    };
  },
  "refresh.watchdog": () => {
    const whole = refresh();
    const check = { check: 1, emission: 1, refresh: whole };
    return {
      topic: topics.watchdog,
      group: "splitter",
      whole,
      key: whole.refresh_id,
      good: check,
      senseless: {
        "K6 no refresh id": { ...check, refresh: refresh({ refresh_id: "" }) },
        "K12 a negative check": { ...check, check: -1 },
        "K12 a negative emission": { ...check, emission: -1 },
      },
    };
  },
  "token.requested": () => tokenTable(topics.tokenRequested),
  "token.retry": () => tokenTable(topics.retryTiers[0] as TopicDefinition),
  "token.outcome": () => {
    const whole = refresh();
    const key = whole.collection_address;
    // Of the same collection, as their key is.
    const of = (change: Partial<TokenOutcome>) => outcomeOf({ ...whole, refresh_id: randomUUID() }, change);
    return {
      topic: topics.tokenOutcome,
      group: "aggregator",
      whole,
      key,
      good: outcomeOf(whole),
      senseless: {
        "K6 no refresh id": of({ refresh_id: "" }),
        "K12 a negative ordinal": of({ ordinal: -1 }),
        "K13 an ordinal beyond the total": of({ ordinal: 5 }),
        "K13 a total beyond all memory": of({ total: 2 ** 31 - 1 }),
      },
    };
  },
};

function tokenTable(topic: TopicDefinition): Table {
  const whole = refresh();
  return {
    topic,
    group: "fetcher",
    whole,
    key: String(whole.project_id),
    good: tokenOf(whole),
    senseless: {
      "K6 no refresh id": tokenOf(refresh(), { refresh_id: "" }),
      "K12 a negative attempt": tokenOf(refresh(), { attempt: -1 }),
      "K13 an attempt beyond the limit, without those before": tokenOf(refresh(), { attempt: 99 }),
      "no token id": tokenOf(refresh(), { token_id: "../secret" }),
    },
  };
}

it.each(Object.keys(tables))(
  "each payload of %s that nobody can process is dead-lettered once, with its bytes, and the partition moves on",
  async (name) => {
    const { topic, group, whole, key, good, senseless } = (tables[name] as () => Table)();
    const partition = partitionOf(key, topic.partitions);
    const value = codec.encode(topic.name, good);
    const own = Object.entries(senseless).map(
      ([row, record]): Row => ({
        name: row,
        message: { key, value: codec.encode(topic.name, record) },
        cause: "rejected",
      }),
    );
    const rows = [...foreignRows({ key, value }), ...own];
    const offsets: number[] = [];
    for (const { message } of rows) offsets.push(await produce(topic, { ...message, partition }));
    // K14: whatever time its producer gives it, the broker's counts.
    await produce(topic, { key, value, partition, timestamp: String(Date.UTC(9999, 11, 31)) });

    await completions.until("the completion of the good one", (records) => records.some((one) => one.key === whole.refresh_id));
    await untilCommitted(group, topic, partition);
    const wanted = rows.map(({ message, cause }, index) => ({
      offset: offsets[index],
      cause,
      bytes: message.value?.length ?? 0,
    }));
    const found = await lettersOf(topic);
    expect(found).toEqual(wanted);
    expect(services.flatMap(({ failures }) => failures)).toEqual([]);
  },
);

async function produce(topic: TopicDefinition, message: Message & { partition: number; timestamp?: string }): Promise<number> {
  const [answer] = await raw.send({ topic: topic.name, acks: -1, messages: [message] });
  return Number(answer?.baseOffset);
}

/** All that were written by now, by their place in their topic. */
async function lettersOf(topic: TopicDefinition) {
  const ends = await admin.fetchTopicOffsets(topics.deadLetter.name);
  const count = ends.reduce((sum, { high }) => sum + Number(high), 0);
  await waitFor(
    `${count} dead letters`,
    () => deadLetters.length,
    (length) => length >= count,
  );
  const ofTopic = deadLetters.filter(({ headers }) => String(headers?.dead_letter_topic) === topic.name);
  return ofTopic
    .map(({ headers, value }) => ({
      offset: Number(headers?.dead_letter_offset),
      cause: String(headers?.dead_letter_cause),
      bytes: value?.length ?? 0,
    }))
    .toSorted((a, b) => a.offset - b.offset);
}

async function untilCommitted(group: Table["group"], topic: TopicDefinition, partition: number): Promise<void> {
  const groupId = `${environment.env.GROUP_PREFIX}.${group}`;
  const behind = async () => {
    const [ends, [committed]] = await Promise.all([
      admin.fetchTopicOffsets(topic.name),
      admin.fetchOffsets({ groupId, topics: [topic.name] }),
    ]);
    const end = ends.find((one) => one.partition === partition)?.high;
    const mark = committed?.partitions.find((one) => one.partition === partition)?.offset;
    return Number(end) - Number(mark);
  };
  await waitFor(`${group} has committed all of ${topic.name}`, behind, (count) => count === 0);
}

it("K7, K14: a refresh of the year 2255, which no table knows, holds nobody up, and neither do its token and its outcome", async () => {
  // Near the largest that Avro and JavaScript agree on.
  const far = 8_999_999_999_000_000;
  const [ahead, behind] = [refresh({ requested_at: far, deadline: far }), refresh()];
  const late = { ...ahead, refresh_id: randomUUID() };
  const records: [TopicDefinition, string, unknown][] = [
    [topics.refreshRequested, behind.refresh_id, ahead],
    [topics.refreshRequested, behind.refresh_id, behind],
    [topics.tokenOutcome, ahead.collection_address, outcomeOf(late, { created_at: far })],
  ];
  for (const [topic, key, record] of records) {
    await produce(topic, { key, value: codec.encode(topic.name, record), partition: partitionOf(key, topic.partitions) });
  }
  const wanted = [ahead, behind, late].map(({ refresh_id }) => refresh_id);
  const all = (seen: readonly { key: string }[]) => wanted.every((id) => seen.some(({ key }) => key === id));
  await completions.until("the completion of all three", all);
});
