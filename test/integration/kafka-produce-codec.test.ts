import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import avsc from "avsc";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec } from "../../services/common/kafka/contracts.ts";
import { provisionSchemas } from "../../services/common/kafka/provision/schemas.ts";
import { schemaText, subjectOf } from "../../services/common/kafka/schema-files.ts";
import { loadTopics, type TopicDefinition } from "../../services/common/kafka/topics.ts";
import type {
  Attempt,
  RefreshCompleted,
  RefreshRequested,
  RefreshWatchdog,
  TokenOutcome,
  TokenRefresh,
  TokenState,
} from "../../services/common/messages/records.ts";
import { republishOrder } from "../../services/common/messages/republish.ts";

const registryUrl = stackEnvironment().SCHEMA_REGISTRY_URL ?? "";
const topics = loadTopics({ prefix: `codec-${randomBytes(4).toString("hex")}.` });
const uses = topics.all.filter(({ schema }) => schema !== null);
let codec: Codec;

beforeAll(async () => {
  await provisionSchemas({ registryUrl, topics, dryRun: false });
  codec = await createCodec({ registryUrl, uses });
});

const uint256 = (2n ** 256n - 1n).toString();
const refreshRequested: RefreshRequested = {
  refresh_id: "0b5f7c7e-5d0a-4a57-9a2c-4f0f7b1f5a11",
  project_id: 7,
  collection_address: "0x95cf5c1b78ed03db3a1d69e722f2e2fa40cdf584",
  token_ids: ["0", "1", uint256],
  requested_at: 1_795_234_600_030_123,
  deadline: 1_795_407_400_030_123,
  metadata_api_url: "https://api.example/metadata",
  token_policy: "registered",
  max_concurrency: 4,
  max_requests_per_second: null,
};
const attempt: Attempt = { at: 1_795_234_600_030_123, status: 503, duration_ms: 12, body_bytes: 0, cause: "status_503" };
const tokenRefresh: TokenRefresh = {
  refresh_id: refreshRequested.refresh_id,
  ordinal: 2,
  total: 3,
  project_id: 7,
  collection_address: refreshRequested.collection_address,
  token_id: uint256,
  requested_at: refreshRequested.requested_at,
  deadline: refreshRequested.deadline,
  metadata_api_url: refreshRequested.metadata_api_url,
  max_concurrency: null,
  max_requests_per_second: 50,
  emission: 1,
  attempt: 3,
  first_queued_at: 1_795_234_600_040_000,
  attempts: [attempt, { ...attempt, status: null, cause: null }],
};
const succeeded: TokenOutcome = {
  refresh_id: refreshRequested.refresh_id,
  ordinal: 0,
  total: 3,
  project_id: 7,
  collection_address: refreshRequested.collection_address,
  token_id: "1",
  requested_at: refreshRequested.requested_at,
  created_at: 1_795_234_600_090_001,
  emission: 2,
  url: "https://api.example/metadata/1",
  status_code: 200,
  metadata: '{"name":"\u{1F409} Drache \u{FFFD} № 1","n":1e400}',
  content_hash: "ab".repeat(32),
  error_code: null,
  error_detail: null,
  response_body: null,
  attempts: [attempt],
  republish: false,
};
const failed: TokenOutcome = {
  ...succeeded,
  status_code: null,
  metadata: null,
  content_hash: null,
  error_code: "unable_to_retrieve_metadata",
  error_detail: "timeout",
  response_body: "",
  attempts: [],
};
const tokenState: TokenState = {
  collection_address: refreshRequested.collection_address,
  token_id: uint256,
  version: 3 * 2 ** 40 + 17,
  content_hash: "cd".repeat(32),
  metadata: `{"filler":"${"é".repeat(128 * 1024)}"}`,
  refresh_id: refreshRequested.refresh_id,
  refreshed_at: 1_795_234_600_090_001,
};
const refreshCompleted: RefreshCompleted = {
  refresh_id: refreshRequested.refresh_id,
  project_id: Number.MAX_SAFE_INTEGER - 1,
  collection_address: refreshRequested.collection_address,
  requested_at: refreshRequested.requested_at,
  completed_at: 1_795_234_700_000_000,
  total: 3,
  succeeded: 1,
  unchanged: 1,
  failed: 2,
  failed_by_code: { token_not_found: 1, invalid_response_status_code: 1 },
};
const watchdog: RefreshWatchdog = { check: 1, emission: 2, refresh: { ...refreshRequested, max_concurrency: null } };
const samples: [string, TopicDefinition, object][] = [
  ["refresh.requested", topics.refreshRequested, refreshRequested],
  ["token.requested", topics.tokenRequested, tokenRefresh],
  ...topics.retryTiers.map((tier): [string, TopicDefinition, object] => [tier.baseName, tier, tokenRefresh]),
  ["token.outcome of a success", topics.tokenOutcome, succeeded],
  ["token.outcome of a failure", topics.tokenOutcome, failed],
  ["token.outcome that orders a token again", topics.tokenOutcome, republishOrder(succeeded.collection_address, "1")],
  ["refresh.watchdog", topics.watchdog, watchdog],
  ["token.state", topics.tokenState, tokenState],
  ["refresh.completed", topics.refreshCompleted, refreshCompleted],
];

describe("a record", () => {
  it.each(samples)("comes back as it went, and reads the same with the stock client: %s", async (_name, topic, record) => {
    const bytes = codec.encode(topic.name, record);
    expect(await codec.decode(topic.name, bytes)).toEqual({ ok: true, value: record });
    const foreign: unknown = await new SchemaRegistry({ host: registryUrl }).decode(bytes);
    expect(JSON.parse(JSON.stringify(foreign))).toEqual(record);
  });

  it("is not changed by the ones encoded after it", () => {
    const first = codec.encode(topics.tokenOutcome.name, succeeded);
    const copy = Buffer.from(first);
    codec.encode(topics.tokenState.name, tokenState);
    codec.encode(topics.tokenOutcome.name, failed);
    expect(first).toEqual(copy);
  });

  it("is whole, and stays so, whatever its size and that of the others", async () => {
    const topic = topics.tokenOutcome.name;
    // Together more than any buffer they may be written into, alone as well, and in every relation to its end.
    const sizes = [...Array.from({ length: 300 }, (_, index) => index * 7), 60_000, 65_000, 65_536, 200_000, 1, 2, 3];
    const records = sizes.map((size) => ({ ...succeeded, metadata: "x".repeat(size) }));
    const encoded = records.map((record) => codec.encode(topic, record));
    for (const [index, bytes] of encoded.entries()) {
      expect(await codec.decode(topic, bytes)).toEqual({ ok: true, value: records[index] });
    }
  });

  it.each([
    ["a whole number that JavaScript cannot hold exactly", { ...tokenState, version: 2 ** 53 }, "version is not of type long"],
    ["a missing field", { ...tokenState, metadata: undefined }, "metadata is not of type string"],
    ["a wrong type deep inside", { ...tokenState, refreshed_at: "secret" }, "refreshed_at is not of type long"],
  ])("is refused with the field's name, not with its content: %s", (_what, record, problem) => {
    const encode = () => codec.encode(topics.tokenState.name, record);
    expect(encode).toThrow(new TypeError(`not a record of public.metadata.token.state.v1: ${problem}`));
  });

  it("is refused for a topic that the codec was not made for", () => {
    expect(() => codec.encode("other", tokenState)).toThrow("this codec was not made for other");
    expect(() => codec.decode("other", null)).toThrow("this codec was not made for other");
  });
});

describe("bytes that are no record", () => {
  const good = () => codec.encode(topics.tokenRequested.name, tokenRefresh);
  const withId = (id: number) => {
    const bytes = good();
    bytes.writeInt32BE(id, 1);
    return bytes;
  };

  it.each<[string, () => Buffer | null]>([
    ["a tombstone", () => null],
    ["nothing", () => Buffer.alloc(0)],
    ["less than a header", () => Buffer.from([0, 0, 0, 0])],
    ["a header alone", () => good().subarray(0, 5)],
    ["JSON", () => Buffer.from('{"refresh_id":"1"}')],
    ["a record that is cut", () => good().subarray(0, -1)],
    ["a record with something behind it", () => Buffer.concat([good(), Buffer.from([0])])],
    ["a length of two gigabytes", () => Buffer.concat([good().subarray(0, 5), Buffer.from("feffffff0f", "hex")])],
    ["the schema of another topic", () => codec.encode(topics.tokenState.name, tokenState)],
  ])("are undecodable: %s", async (_what, bytes) => {
    expect(await codec.decode(topics.tokenRequested.name, bytes())).toMatchObject({ ok: false, cause: "undecodable" });
  });

  it("are told from records whose schema the registry does not know", async () => {
    const result = await codec.decode(topics.tokenRequested.name, withId(2_000_000_000));
    expect(result).toMatchObject({ ok: false, cause: "unknown_schema" });
  });

  it("never make it throw, whatever they are", async () => {
    const frame = good().subarray(0, 5);
    const outcomeFrame = codec.encode(topics.tokenOutcome.name, failed).subarray(0, 5);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (noise) => {
        const results = [
          await codec.decode(topics.tokenRequested.name, Buffer.concat([frame, noise])),
          await codec.decode(topics.tokenOutcome.name, Buffer.concat([outcomeFrame, noise])),
        ];
        for (const result of results) if (!result.ok) expect(result.cause).toBe("undecodable");
      }),
      { numRuns: 2_000 },
    );
  });

  it("never make it throw when one byte of a record is wrong", async () => {
    const bytes = good();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 5, max: bytes.length - 1 }), fc.nat(255), async (at, byte) => {
        const wrong = Buffer.from(bytes);
        wrong[at] = byte;
        const result = await codec.decode(topics.tokenRequested.name, wrong);
        if (!result.ok) expect(result.cause).toBe("undecodable");
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("a schema of another release", () => {
  const later = loadTopics({ prefix: `codec-later-${randomBytes(4).toString("hex")}.` });
  const { tokenOutcome } = later;

  /** The schema of token.outcome with another set of fields. */
  function changed(change: (fields: { name: string }[]) => object[]): { type: avsc.Type; text: string } {
    const schema = JSON.parse(schemaText(tokenOutcome)) as { fields: { name: string }[] };
    const text = JSON.stringify({ ...schema, fields: change(schema.fields) });
    return { type: avsc.Type.forSchema(JSON.parse(text) as avsc.Schema), text };
  }

  async function register(schema: string): Promise<number> {
    const answer = await fetch(`${registryUrl}/subjects/${subjectOf(tokenOutcome)}/versions`, {
      method: "POST",
      headers: { "content-type": "application/vnd.schemaregistry.v1+json" },
      body: JSON.stringify({ schema }),
    });
    return ((await answer.json()) as { id: number }).id;
  }

  function framed(id: number, bytes: Buffer): Buffer {
    const header = Buffer.alloc(5);
    header.writeInt32BE(id, 1);
    return Buffer.concat([header, bytes]);
  }

  it("is read as ours, and ours is written as long as ours is what we have", async () => {
    const earlier = changed((fields) => fields.filter(({ name }) => name !== "response_body"));
    const earlierId = await register(earlier.text);
    await provisionSchemas({ registryUrl, topics: later, dryRun: false });
    const newer = changed((fields) => [...fields, { name: "added", type: "string", default: "" }]);
    const newerId = await register(newer.text);
    const started = await createCodec({ registryUrl, uses: [tokenOutcome] });
    const ourId = started.encode(tokenOutcome.name, failed).readInt32BE(1);
    expect(new Set([earlierId, ourId, newerId]).size).toBe(3);
    const { response_body: _body, ...before } = failed;
    const fromEarlier = await started.decode(tokenOutcome.name, framed(earlierId, earlier.type.toBuffer(before)));
    expect(fromEarlier).toEqual({ ok: true, value: { ...failed, response_body: null } });
    const fromNewer = framed(newerId, newer.type.toBuffer({ ...failed, added: "later" }));
    expect(await started.decode(tokenOutcome.name, fromNewer)).toEqual({ ok: true, value: failed });
    // The second time the resolution is known.
    expect(started.decode(tokenOutcome.name, fromNewer)).toEqual({ ok: true, value: failed });
  });
});

describe("a registry that cannot be reached", () => {
  let proxy: Server;
  let broken = false;
  const proxyUrl = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

  beforeAll(async () => {
    proxy = createServer((request, response) => {
      if (broken) return void request.socket.destroy();
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", async () => {
        const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
        const contentType = request.headers["content-type"] ?? "application/json";
        const answer = await fetch(`${registryUrl}${request.url}`, {
          method: request.method ?? "GET",
          headers: { "content-type": contentType },
          ...body,
        });
        response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => new Promise((resolve) => proxy.close(resolve)));

  it("is told from a schema that is unknown, and nothing of it is remembered", async () => {
    const distant = await createCodec({ registryUrl: proxyUrl(), uses: [topics.tokenRequested, topics.tokenOutcome] });
    const foreign = codec.encode(topics.tokenState.name, tokenState);
    broken = true;
    const unreachable = await distant.decode(topics.tokenRequested.name, foreign);
    expect(unreachable).toMatchObject({ ok: false, cause: "registry_unreachable" });
    const known = codec.encode(topics.tokenRequested.name, tokenRefresh);
    expect(distant.decode(topics.tokenRequested.name, known)).toEqual({ ok: true, value: tokenRefresh });
    broken = false;
    expect(await distant.decode(topics.tokenRequested.name, foreign)).toMatchObject({ ok: false, cause: "undecodable" });
  });

  it("keeps a service from starting, as do schemas that are not there, with a sentence that says which", async () => {
    const missing = loadTopics({ prefix: "never-provisioned." });
    await expect(createCodec({ registryUrl, uses: [missing.tokenState] })).rejects.toThrow(
      "the schema registry gives no id for schemas/avro/token-state.avsc in never-provisioned.public.metadata.token.state.v1-value",
    );
    broken = true;
    await expect(createCodec({ registryUrl: proxyUrl(), uses: [topics.tokenState] })).rejects.toThrow(
      "the schema registry gives no id for schemas/avro/token-state.avsc",
    );
    broken = false;
  });
});
