import { randomUUID } from "node:crypto";
import { SchemaRegistry, SchemaType } from "@kafkajs/confluent-schema-registry";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { tokenStateProgram } from "../../deploy/operate/token-state.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import { provisionSchemas } from "../../services/common/kafka/provision/schemas.ts";
import { schemaText, subjectOf } from "../../services/common/kafka/schema-files.ts";
import { loadTopics } from "../../services/common/kafka/topics.ts";
import type { TokenOutcome } from "../../services/common/messages/records.ts";
import { republishOrder } from "../../services/common/messages/republish.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { runProgram, startProgram } from "../support/program.ts";
import type { TestServiceContext } from "../support/service-context.ts";
import { readTopic, type TopicReader } from "../support/topic-reader.ts";
import { failure, refreshOf, Stage, success } from "./aggregator-stage.ts";

let stage: Stage;
let outcomes: TopicReader<TokenOutcome>;
let service: TestServiceContext;

beforeAll(async () => {
  stage = await Stage.create("token-state");
  outcomes = await readTopic<TokenOutcome>(stage.environment.env, stage.environment.topics.tokenOutcome.name);
  service = await stage.start();
});
afterEach(() => expect(service.failures).toEqual([]));
afterAll(async () => {
  await outcomes?.close();
  await stage?.close();
});

const republish = (...args: readonly string[]) => runProgram(tokenStateProgram, ["republish", ...args], stage.environment.env);
const ordersOf = (collection: string) =>
  outcomes.records
    .filter(({ value }) => value.republish && value.collection_address === collection)
    .map(({ value }) => value.token_id);
const publishedTimes = (collection: string, tokenId: string, count: number) =>
  stage.states.until(`${count} records of token ${tokenId}`, () => stage.published(collection, tokenId).length >= count);

/** A collection whose tokens have content; returns when their refresh is complete. */
async function storedCollection(tokenIds: readonly string[]): Promise<string> {
  const collection = stage.collection();
  const records = refreshOf(collection, ...tokenIds.map((id) => [id, success(`{"name":"${id}"}`)] as const));
  await stage.produce(records);
  await stage.completed(records);
  return collection;
}

/** Something of the same partition behind everything so far, through to its completion. */
async function behind(collection: string): Promise<void> {
  const later = refreshOf(collection, ["999999999", failure("token_not_found")]);
  await stage.produce(later);
  await stage.completed(later);
}

describe("a token that is ordered to be published again", () => {
  it("comes with its stored version and content, and nothing is written or counted for it", async () => {
    const collection = await storedCollection(["7", "300"]);
    // Read once more and unchanged: the row knows who read it last, and the topic does not.
    const again = refreshOf(collection, ["7", success('{"name":"7"}')]);
    await stage.produce(again);
    await stage.completed(again);
    const before = await stage.token(collection, "7");

    await stage.produce([republishOrder(collection, "7"), republishOrder(collection, "8")]);
    await publishedTimes(collection, "7", 2);
    await behind(collection);
    const [first, second, ...more] = stage.published(collection, "7");
    expect(more).toEqual([]);
    expect(second).toEqual({ ...first, refresh_id: again[0]?.refresh_id, refreshed_at: again[0]?.created_at });
    expect(stage.states.records.filter(({ key }) => key === `${collection}:7`).map(({ headers }) => headers.ce_id)).toEqual(
      Array.from({ length: 2 }, () => expect.stringMatching(/^[0-9a-f-]{36}$/)),
    );
    expect(await stage.token(collection, "7")).toEqual(before);
    expect(stage.published(collection, "8")).toEqual([]);
    const { body } = await service.metrics.text();
    expect(body).toMatch(/token_states_republished_total\{result="published",service="aggregator"\} 1\n/);
    expect(body).toMatch(/token_states_republished_total\{result="unknown_token",service="aggregator"\} 1\n/);
    expect(await stage.progress("00000000-0000-0000-0000-000000000000")).toBeUndefined();
  });

  it("among outcomes that change it is last on its topic with the newest content", async () => {
    const collection = await storedCollection(["1"]);
    const change = refreshOf(collection, ["1", success("B")]);
    const last = refreshOf(collection, ["1", success("C")]);
    const order = republishOrder(collection, "1");
    await stage.produce([order, ...change, order, ...last, order]);
    await stage.completed(last);
    await behind(collection);
    const versions = stage.published(collection, "1").map(({ version }) => version);
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    expect(stage.published(collection, "1").at(-1)).toMatchObject({ metadata: "C" });
  });

  it("with a name that makes no sense goes to the dead letters, and the outcome behind it counts", async () => {
    const collection = stage.collection();
    const seen = stage.deadLetters.records.length;
    await stage.produce([{ ...republishOrder(collection, "1"), token_id: "01" }]);
    await behind(collection);
    await stage.deadLetters.until("the order", (records) => records.length > seen);
    expect(stage.deadLetters.records.at(-1)?.headers).toMatchObject({
      dead_letter_cause: "rejected",
      dead_letter_message: expect.stringContaining("token_id"),
    });
  });
});

describe("token-state republish", () => {
  it("orders every token of the table that has content, once each", async () => {
    const spread = Array.from({ length: 40 }, (_, index) => String(index * 100));
    const one = await storedCollection(spread);
    const other = await storedCollection(["1", (2n ** 256n - 1n).toString()]);
    const insert = "INSERT INTO tokens (collection_address, bucket, token_id, registered_at) VALUES (?, ?, ?, ?)";
    await stage.cassandra.write(insert, [other, bucketOf("2"), "2", 1]);
    const { code, stdout, stderr } = await republish();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const tokenId of spread) await publishedTimes(one, tokenId, 2);
    await publishedTimes(other, "1", 2);
    expect(ordersOf(one).toSorted()).toEqual(spread.toSorted());
    expect(ordersOf(other)).toHaveLength(2);
    expect(stdout).toMatch(/^\d+ tokens ordered\n$/);
    expect(Number.parseInt(stdout, 10)).toBeGreaterThanOrEqual(42);
  });

  it("leaves the other collections out, and the other tokens, when it is told one", async () => {
    const [collection, other] = [await storedCollection(["1", "2", "600"]), await storedCollection(["1"])];
    expect((await republish("--collection", collection.toUpperCase().replace("0X", "0x"))).stdout).toBe("3 tokens ordered\n");
    expect((await republish("--collection", collection, "--token", "600")).stdout).toBe("1 tokens ordered\n");
    await publishedTimes(collection, "600", 3);
    await publishedTimes(collection, "1", 2);
    expect(ordersOf(collection).toSorted()).toEqual(["1", "2", "600", "600"]);
    expect(ordersOf(other)).toEqual([]);
  });

  it.each([
    ["a token without content", ["--collection", `0x${"ab".repeat(20)}`, "--token", "5"], "nothing is stored"],
    ["a token without its collection", ["--token", "5"], "--collection"],
    ["an address that is none", ["--collection", "0x12"], "40 hexadecimal digits"],
    ["a rate of nothing", ["--rate", "0"], "whole number"],
  ])("refuses %s", async (_what, args, words) => {
    const { code, stderr } = await republish(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
  });

  it("says where it stopped when it is interrupted, and goes on there", async () => {
    const tokenIds = Array.from({ length: 60 }, (_, index) => String(index * 256));
    const collection = await storedCollection(tokenIds);
    const first = startProgram(
      tokenStateProgram,
      ["republish", "--collection", collection, "--rate", "2"],
      stage.environment.env,
    );
    await outcomes.until("some orders", () => ordersOf(collection).length >= 3);
    first.interrupt();
    const interrupted = await first.ended;
    expect(interrupted.code).toBe(130);
    const [, from = ""] = /go on with (--from=-?\d+)\n$/.exec(interrupted.stderr) ?? [];
    const sent = Number.parseInt(interrupted.stdout, 10);
    expect(sent).toBeGreaterThanOrEqual(3);
    expect(sent).toBeLessThan(60);
    const second = await republish("--collection", collection, from);
    // The bucket of the position itself is done again: it may have been sent in part.
    expect(second.stdout).toBe(`${60 - sent + 1} tokens ordered\n`);
    await outcomes.until("every order", () => new Set(ordersOf(collection)).size === 60);
    for (const tokenId of tokenIds) await publishedTimes(collection, tokenId, 2);
  });
});

describe("the schema of token.outcome", () => {
  it("takes orders in, compatibly with every version before, and reads what was written without them", async () => {
    const { env } = stage.environment;
    const registryUrl = env.SCHEMA_REGISTRY_URL ?? "";
    const topics = loadTopics({ prefix: `token-state-${randomUUID()}.` });
    const schema = JSON.parse(schemaText(topics.tokenOutcome)) as { doc: string; fields: { name: string }[] };
    const before = JSON.stringify({ ...schema, doc: "before", fields: schema.fields.filter(({ name }) => name !== "republish") });
    const registry = new SchemaRegistry({ host: registryUrl });
    const { id } = await registry.register(
      { type: SchemaType.AVRO, schema: before },
      { subject: subjectOf(topics.tokenOutcome) },
    );
    const [report] = (await provisionSchemas({ registryUrl, topics, dryRun: false })).filter(
      ({ subject }) => subject === subjectOf(topics.tokenOutcome),
    );
    expect(report?.refusal).toBeUndefined();

    const [outcome] = refreshOf(stage.collection(), ["1", success("A")]);
    const codec = await createCodec({ registryUrl, uses: [topics.tokenOutcome] });
    const decoded = await codec.decode(topics.tokenOutcome.name, await registry.encode(id, outcome));
    expect(decoded).toEqual({ ok: true, value: { ...outcome, republish: false } });
  });
});
