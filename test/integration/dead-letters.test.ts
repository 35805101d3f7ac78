import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deadLettersProgram } from "../../deploy/operate/dead-letters.ts";
import { microsFromMs } from "../../services/common/clock.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import { createDeadLetters, type DeadLetterCause, type DeadLetters } from "../../services/common/kafka/consume/dead-letters.ts";
import type { Codec, Headers, RawRecord, RecordProducer } from "../../services/common/kafka/contracts.ts";
import { createProducer } from "../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import type { RefreshRequested, TokenRefresh } from "../../services/common/messages/records.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";
import { parse } from "../../services/splitter/config.ts";
import { run } from "../../services/splitter/run.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { runProgram } from "../support/program.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { type ReadRecord, readTopic, type TopicReader } from "../support/topic-reader.ts";
import { refreshOf } from "../unit/splitter/refreshes.ts";

let environment: TestEnvironment;
let codec: Codec;
let producer: RecordProducer;
let deadLetters: DeadLetters;
let requested: TopicReader<RefreshRequested>;
let tokens: TopicReader<TokenRefresh>;
let dead: TopicReader<Buffer>;
let splitter: TestServiceContext;

beforeAll(async () => {
  environment = await createEnvironment("dead-letters");
  const { env, topics } = environment;
  const logger = createLogger("test", "silent");
  const requestTimeoutMs = 5_000;
  const kafka = createKafka({ brokers: [env.KAFKA_BROKERS ?? ""], clientId: "test", requestTimeoutMs, logger });
  [codec, producer, requested, tokens, dead] = await Promise.all([
    createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses: [topics.refreshRequested] }),
    createProducer(kafka, { topics, logger, requestTimeoutMs }),
    readTopic<RefreshRequested>(env, topics.refreshRequested.name),
    readTopic<TokenRefresh>(env, topics.tokenRequested.name),
    readTopic<Buffer>(env, topics.deadLetter.name),
  ]);
  const options = { producer, topics, metrics: new Metrics("test"), service: "splitter", groupId: "a group" };
  deadLetters = createDeadLetters(options);
  const parsed = parse(env);
  if (!parsed.ok) throw new Error(parsed.problems.join("; "));
  splitter = createServiceContext("splitter");
  await run(parsed.config, splitter);
});

afterAll(async () => {
  await splitter?.stop();
  await Promise.all([requested, tokens, dead].map((reader) => reader?.close()));
  await producer?.close();
  await environment?.close();
});

const program = (...args: readonly string[]) => runProgram(deadLettersProgram, args, environment.env);

function freshRefresh(): RefreshRequested {
  const requestedAt = microsFromMs(Date.now());
  return refreshOf({
    refresh_id: randomUUID(),
    token_policy: "open",
    requested_at: requestedAt,
    deadline: requestedAt + 172_800_000_000,
  });
}

/** As a release would have done that crashes on what is a good record. Returns the letter's id. */
async function buried(
  refresh: RefreshRequested,
  change: Partial<RawRecord> & { cause?: DeadLetterCause; message?: string } = {},
): Promise<string> {
  const { cause = "crashed", message = "x is not a function", ...fields } = change;
  const { name } = environment.topics.refreshRequested;
  const headers: Headers = { traceparent: "00-aa-bb-01" };
  const place = { topic: name, partition: 3, offset: 1_234, timestampMs: 1_767_225_600_000 };
  const key = Buffer.from(refresh.refresh_id);
  const seen = dead.records.length;
  await deadLetters.put({ ...place, key, value: codec.encode(name, refresh), headers, ...fields }, cause, message);
  const of = ({ headers }: ReadRecord<Buffer>, index: number) => index >= seen && headers.dead_letter_settled === undefined;
  const letter = (await dead.until("the letter", (records) => records.some(of))).find(of);
  return `${letter?.partition}/${letter?.offset}`;
}

const letterIn = async (id: string, ...options: readonly string[]) => {
  const letters = JSON.parse((await program("list", "--json", ...options)).stdout) as { id: string; state: string }[];
  return letters.find((letter) => letter.id === id);
};
const splitsOf = ({ refresh_id }: RefreshRequested) =>
  tokens.records.filter(({ value }) => value.refresh_id === refresh_id).length;
const untilSplit = (refresh: RefreshRequested, count = 3) => tokens.until("its tokens", () => splitsOf(refresh) >= count);
const requestsOf = ({ refresh_id }: RefreshRequested) => requested.records.filter(({ key }) => key === refresh_id);

describe("dead-letters list and show", () => {
  it("say where a record of the services comes from and why it is dead, and show what is in it", async () => {
    const { name } = environment.topics.refreshRequested;
    const bad = { ...freshRefresh(), token_ids: [] };
    const noAvro = randomUUID();
    await producer.deliver([
      { topic: name, key: bad.refresh_id, value: codec.encode(name, bad) },
      { topic: name, key: noAvro, value: Buffer.from("no Avro") },
    ]);
    await dead.until("both", (records) => [bad.refresh_id, noAvro].every((key) => records.some((record) => record.key === key)));
    const { code, stdout } = await program("list");
    expect(code).toBe(0);
    const lineOf = (key: string) => stdout.split("\n").find((line) => line.includes(key)) ?? "";
    expect(lineOf(bad.refresh_id)).toMatch(
      /^\d\/\d+ +\S+Z +open +rejected +internal\.metadata\.refresh\.requested\.v1 +\d\/\d+ .*token_ids/,
    );
    expect(lineOf(noAvro)).toContain("undecodable");
    expect(stdout).toMatch(/\n\n\d+ open\n$/);

    const rejected = await program("show", lineOf(bad.refresh_id).split(" ", 1)[0] ?? "");
    expect(rejected.stdout).toContain(`"refresh_id": "${bad.refresh_id}"`);
    expect(rejected.stdout).toMatch(/by +splitter \(group .+\.splitter\)/);
    const undecodable = await program("show", lineOf(noAvro).split(" ", 1)[0] ?? "");
    expect(undecodable.stdout).toContain(`${Buffer.from("no Avro").toString("hex").padEnd(64)}  no Avro`);
  });

  it.each([
    ["by cause", ["--cause", "crashed"], ["--cause", "unknown_schema"]],
    ["by topic", ["--topic", "refresh.requested"], ["--topic", "token.outcome"]],
    ["by the time of death", ["--since", "1h"], ["--since", "2200-01-01"]],
    ["by the end of a time", ["--until", "2200-01-01T00:00:00Z"], ["--until", "1d"]],
  ])("choose %s", async (_what, with_, without) => {
    const id = await buried(freshRefresh());
    expect(await letterIn(id, ...with_)).toMatchObject({ id, state: "open" });
    expect(await letterIn(id, ...without)).toBeUndefined();
  });

  it("give a terminal no control characters of foreign texts", async () => {
    const id = await buried(freshRefresh(), { message: "\u001b[2Jgone\r\nfake line" });
    for (const args of [["list"], ["show", id]]) {
      const { stdout } = await program(...args);
      expect(stdout).toContain("\\u001b[2Jgone\\u000d\\u000afake line");
    }
  });

  it.each([
    ["a letter that is not there", ["show", "0/999999"], "no dead letter 0/999999"],
    ["what is no id", ["show", "17"], "partition/offset"],
    ["a cause that does not exist", ["list", "--cause", "bored"], "Allowed choices"],
    ["what is no time", ["list", "--since", "yesterday"], "ISO 8601"],
    ["a replay of nothing in particular", ["replay"], "ids, filters, or --all"],
  ])("refuse %s", async (_what, args, words) => {
    const { code, stderr } = await program(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
  });
});

describe("dead-letters replay", () => {
  it("puts a record back as it was, with its own headers and those of its origin, and it is processed", async () => {
    const refresh = freshRefresh();
    const id = await buried(refresh);
    const { code, stdout } = await program("replay", id, "--note", "fixed in 1.2");
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `${id}  internal.metadata.refresh.requested.v1  replayed\n1 replayed, 0 still open\n`,
    });
    await untilSplit(refresh);
    const [back] = requestsOf(refresh);
    expect(back).toMatchObject({ key: refresh.refresh_id, value: refresh });
    expect(back?.headers).toEqual({
      traceparent: "00-aa-bb-01",
      dead_letter_topic: environment.topics.refreshRequested.name,
      dead_letter_partition: "3",
      dead_letter_offset: "1234",
      dead_letter_timestamp_ms: "1767225600000",
      dead_letter_replay_of: id,
    });
    expect(await letterIn(id)).toMatchObject({ state: "replayed" });
    expect(await letterIn(id, "--open")).toBeUndefined();
    expect((await program("show", id)).stdout).toMatch(/state +replayed at \S+Z fixed in 1\.2\n/);
  });

  it("does nothing a second time, unless it is told to", async () => {
    const refresh = freshRefresh();
    const id = await buried(refresh);
    expect((await program("replay", id)).code).toBe(0);
    const second = await program("replay", id);
    expect({ code: second.code, stderr: second.stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(id) });
    expect((await program("replay", id, "--again")).code).toBe(0);
    await untilSplit(refresh, 6);
    expect(requestsOf(refresh)).toHaveLength(2);
  });

  it("takes all that the filters choose, oldest first in each partition, and leaves the others", async () => {
    const refreshes = [freshRefresh(), freshRefresh(), freshRefresh()];
    const ids: string[] = [];
    for (const refresh of refreshes) ids.push(await buried(refresh, { cause: "unknown_schema" }));
    const other = await buried(freshRefresh(), { cause: "rejected" });
    const { stdout } = await program("replay", "--cause", "unknown_schema", "--topic", "refresh.requested");
    expect(stdout).toMatch(/\n3 replayed, 0 still open\n$/);
    for (const refresh of refreshes) await untilSplit(refresh);
    const open = (await program("list", "--open")).stdout.split("\n").map((line) => line.split(" ", 1)[0]);
    expect([...ids, other].filter((id) => open.includes(id))).toEqual([other]);
  });

  it.each<[string, Partial<RawRecord>, string]>([
    ["a tombstone", { value: null }, "it was a tombstone"],
    ["a record without a key", { key: null }, "no key that is text"],
    ["a key that is no text", { key: Buffer.from([0xff, 0x00]) }, "no key that is text"],
    ["a record of a topic that is not ours", { topic: "somebody.elses" }, "no topic of this service"],
  ])("leaves %s open, and says why", async (_what, change, words) => {
    const id = await buried(freshRefresh(), change);
    const { code, stdout } = await program("replay", id);
    expect(code).toBe(1);
    expect(stdout).toContain(words);
    expect(await letterIn(id)).toMatchObject({ state: "open" });
  });
});

describe("dead-letters discard", () => {
  it("only says what it would do until it is told to do it, and then list shows it as settled", async () => {
    const refresh = freshRefresh();
    const id = await buried(refresh);
    const asked = await program("discard", id);
    expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining("--yes") });
    expect(asked.stdout).toContain(id);
    expect(await letterIn(id)).toMatchObject({ state: "open" });

    const done = await program("discard", id, "--yes", "--note", "owner asked again");
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining("1 discarded, 0 still open") });
    expect(await letterIn(id)).toMatchObject({ state: "discarded" });
    expect(await program("replay", id)).toMatchObject({ code: 1 });
    // What was buried after it is replayed: nothing of the discarded one was sent before that.
    const later = freshRefresh();
    expect((await program("replay", await buried(later))).code).toBe(0);
    await untilSplit(later);
    expect(requestsOf(refresh)).toEqual([]);
  });
});
