import { createHash, randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TokenRefresh } from "../../services/common/messages/records.ts";
import { startMetadataApi } from "../support/metadata-api.ts";
import type { TestServiceContext } from "../support/service-context.ts";
import { createFetcherStage, type FetcherStage, refreshOf } from "./fetcher-stage.ts";

const tierMs = { "retry-2s": 300, "retry-10s": 700, "retry-60s": 1_500 };
let stage: FetcherStage;
let service: TestServiceContext;

beforeAll(async () => {
  stage = await createFetcherStage("fetcher", {
    delays: Object.entries(tierMs)
      .map(([tier, ms]) => `${tier}=${ms}`)
      .join(),
  });
});
afterAll(() => stage?.close());
beforeEach(async () => {
  stage.api.otherwise({});
  service = await stage.start();
});
afterEach(async () => {
  await service.stop();
  expect(service.failures).toEqual([]);
});

const one = (changes: Partial<TokenRefresh> = {}) => refreshOf(stage.api, 1, changes) as [TokenRefresh];
const callsOf = (record: TokenRefresh) => stage.api.callsOf(record.token_id);

/** Times between the calls for a token, as the API saw them. */
function waitsOf(record: TokenRefresh): number[] {
  const times = callsOf(record).map(({ monotonicMs }) => monotonicMs);
  return times.slice(1).map((time, index) => time - (times[index] ?? 0));
}

describe("a token refresh", () => {
  it("becomes an outcome with the metadata as the API sent it", async () => {
    const [record] = one();
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    const text = stage.api.metadataOf(record.token_id);
    expect(outcome).toMatchObject({
      refresh_id: record.refresh_id,
      ordinal: 0,
      total: 1,
      project_id: record.project_id,
      collection_address: record.collection_address,
      token_id: record.token_id,
      url: `${stage.api.url}/${record.token_id}`,
      status_code: 200,
      metadata: text,
      content_hash: createHash("sha256").update(text).digest("hex"),
      error_code: null,
      error_detail: null,
      response_body: null,
      attempts: [{ status: 200, cause: null, body_bytes: text.length }],
    });
    expect(callsOf(record)).toHaveLength(1);
  });

  it("that the API refuses is tried again after each tier's time, never early, and succeeds at the third attempt", async () => {
    const [record] = one();
    stage.api.script(record.token_id, [{ status: 429 }, { status: 503 }, {}]);
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({ status_code: 200, attempts: [{ status: 429 }, { status: 503 }, { status: 200 }] });
    const [first = 0, second = 0] = waitsOf(record);
    expect(waitsOf(record)).toHaveLength(2);
    expect(first).toBeGreaterThanOrEqual(tierMs["retry-2s"]);
    expect(second).toBeGreaterThanOrEqual(tierMs["retry-10s"]);
    await expectNeverEarly("retry-2s", record, 1);
    await expectNeverEarly("retry-10s", record, 2);
  });

  /** Against the append time of the record that waited, on the broker's clock. */
  async function expectNeverEarly(tierName: keyof typeof tierMs, record: TokenRefresh, callIndex: number): Promise<void> {
    const ofRecord = ({ value }: { value: TokenRefresh }) => value.refresh_id === record.refresh_id;
    const waited = await stage.tier(tierName).until("its record", (seen) => seen.some(ofRecord));
    const appendedMs = waited.find(ofRecord)?.timestampMs ?? Number.NaN;
    expect(callsOf(record)[callIndex]?.wallMs).toBeGreaterThanOrEqual(appendedMs + tierMs[tierName]);
  }

  it.each([429, 503])("that the API always refuses with %i fails after three calls, with what it said", async (status) => {
    const [record] = one();
    stage.api.script(record.token_id, [{ status, body: { error: "later" } }]);
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({
      error_code: "invalid_response_status_code",
      error_detail: status === 429 ? "rate_limited" : "service_unavailable",
      status_code: status,
      response_body: '{"error":"later"}',
      metadata: null,
      content_hash: null,
      attempts: [{ status }, { status }, { status }],
    });
    expect(callsOf(record)).toHaveLength(3);
  });

  it("waits as long as Retry-After asks, in the tier that is long enough", async () => {
    const [record] = one();
    stage.api.script(record.token_id, [{ status: 429, retryAfter: 1 }, {}]);
    await stage.submit([record]);
    await stage.outcomesOf([record]);
    expect(waitsOf(record)).toHaveLength(1);
    expect(waitsOf(record)[0]).toBeGreaterThanOrEqual(tierMs["retry-60s"]);
  });

  it.each([
    [{ status: 404 }, "invalid_response_status_code", "unexpected_status"],
    [{ status: 500 }, "invalid_response_status_code", "unexpected_status"],
    [{ status: 302, headers: { location: "/metadata/1" } }, "invalid_response_status_code", "redirect"],
    [{ body: "[]" }, "unable_to_decode_response", "not_an_object"],
    [{ body: "<html>" }, "unable_to_decode_response", "not_json"],
    [{ body: Buffer.from([0x7b, 0xff, 0x7d]) }, "unable_to_decode_response", "not_utf8"],
    [{ body: `{"a":"${"x".repeat(300_000)}"}` }, "unable_to_decode_response", "body_too_large"],
    [{ reset: true }, "unable_to_retrieve_metadata", "reset"],
  ])("is called once, and no more, when the answer is %o", async (behaviour, code, detail) => {
    const [record] = one();
    stage.api.script(record.token_id, [behaviour]);
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({ error_code: code, error_detail: detail, metadata: null, attempts: [{ cause: detail }] });
    await stage.allCommitted();
    expect(callsOf(record)).toHaveLength(1);
  });

  it("whose API never answers fails after 3 s", async () => {
    const [record] = one();
    stage.api.script(record.token_id, [{ hang: true }]);
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({
      error_code: "unable_to_retrieve_metadata",
      error_detail: "timeout",
      status_code: null,
      response_body: null,
    });
    expect(outcome?.attempts[0]?.duration_ms).toBeGreaterThanOrEqual(2_999);
    expect(callsOf(record)).toHaveLength(1);
  });

  it("past its deadline is not called: it ends by what the record says, so that a replay gives the same bytes", async () => {
    const [record] = one();
    const late = { ...record, deadline: record.requested_at - 1 };
    await stage.submit([late]);
    const [outcome] = await stage.outcomesOf([late]);
    expect(outcome).toMatchObject({
      error_code: "unable_to_retrieve_metadata",
      error_detail: "deadline_exceeded",
      created_at: late.deadline,
      attempts: [],
    });
    // Another group reads the same record from the beginning.
    await service.stop();
    service = await stage.start({ GROUP_PREFIX: `${stage.environment.name}-again` });
    const ofLate = ({ value }: { value: { refresh_id: string } }) => value.refresh_id === late.refresh_id;
    const twice = await stage.outcomes.until("the outcome again", (seen) => seen.filter(ofLate).length === 2);
    const [first, second] = twice.filter(ofLate);
    expect(second?.bytes).toEqual(first?.bytes);
    expect(callsOf(record)).toHaveLength(0);
  });

  it.each([
    ["http://10.0.0.1/tokens", "blocked_address"],
    ["http://169.254.169.254/latest", "blocked_address"],
    ["http://[::ffff:127.0.0.1]/tokens", "blocked_address"],
    ["ftp://api.example.com/tokens", "invalid_url"],
  ])("that would lead to %s is not called, and its owner learns nothing but that", async (metadata_api_url, detail) => {
    const [record] = one({ metadata_api_url });
    await stage.submit([record]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({
      error_code: "unable_to_retrieve_metadata",
      error_detail: detail,
      status_code: null,
      response_body: null,
    });
    const { body } = await service.metrics.text();
    expect(body).toMatch(/fetch_blocked_total\{[^}]*\} [1-9]/);
  });

  it("that came twice is called once, has one outcome, and both its records are committed", async () => {
    const [record] = one();
    stage.api.script(record.token_id, [{ delayMs: 300 }]);
    await stage.submit([record, record]);
    await stage.outcomesOf([record]);
    // Finished by now, and here once more.
    await stage.submit([record]);
    await stage.allCommitted();
    expect(callsOf(record)).toHaveLength(1);
    expect(stage.outcomes.records.filter(({ value }) => value.refresh_id === record.refresh_id)).toHaveLength(1);
  });

  it("that makes no sense goes to the dead letters with its bytes, and the records behind it go on", async () => {
    const [senseless, sound] = refreshOf(stage.api, 2);
    if (senseless === undefined || sound === undefined) throw new Error("no records");
    await stage.submit([{ ...senseless, attempt: -1 }, sound]);
    await stage.outcomesOf([sound]);
    const ofTopic = ({ headers }: { headers: Readonly<Record<string, string>> }) => headers.dead_letter_cause === "rejected";
    const letters = await stage.deadLetters.until("the dead letter", (seen) => seen.some(ofTopic));
    expect(letters.find(ofTopic)?.headers).toMatchObject({ dead_letter_message: "attempt -1", dead_letter_service: "fetcher" });
    await stage.allCommitted();
    expect(callsOf(senseless)).toHaveLength(0);
  });
});

describe("the owner's ceilings", () => {
  it("of concurrency is reached and never exceeded", async () => {
    const own = await startMetadataApi();
    own.otherwise({ delayMs: 25 });
    const records = refreshOf(own, 40, { max_concurrency: 3 });
    await stage.submit(records);
    await stage.outcomesOf(records);
    expect(own.maxConcurrent).toBe(3);
    await own.close();
  });

  it("of calls per second is not exceeded in any second", async () => {
    const records = refreshOf(stage.api, 45, { max_requests_per_second: 20 });
    await stage.submit(records);
    const outcomes = await stage.outcomesOf(records);
    // When the calls began: on a busy machine they may bunch up on their way.
    const times = outcomes.flatMap(({ attempts }) => attempts.map(({ at }) => at / 1_000)).sort((a, b) => a - b);
    expect(times).toHaveLength(45);
    for (const [index, time] of times.entries()) {
      expect(times.slice(index).filter((other) => other <= time + 1_000).length).toBeLessThanOrEqual(20);
    }
  });
});

describe("a project whose API hangs", () => {
  it("does not hold up another one", async () => {
    const hanging = await startMetadataApi();
    hanging.otherwise({ hang: true });
    // Two at once at first, then one after the other: some twenty seconds in which the other has to be done.
    const stuck = refreshOf(hanging, 8, { max_concurrency: 2 });
    const well = refreshOf(stage.api, 100);
    await stage.submit(stuck);
    await stage.submit(well);
    await stage.outcomesOf(well);
    const lastCallMs = Math.max(...well.flatMap((record) => callsOf(record).map(({ monotonicMs }) => monotonicMs)));
    expect(hanging.calls.filter(({ monotonicMs }) => monotonicMs < lastCallMs).length).toBeLessThan(stuck.length);
    await stage.outcomesOf(stuck);
    await hanging.close();
  });
});

describe("an outcome that is too large for its topic", () => {
  it("fails the token without its body instead of being tried for ever", async () => {
    const admin = stage.kafka.admin();
    await admin.connect();
    const { name } = stage.environment.topics.tokenOutcome;
    const limit = (value: string) =>
      admin.alterConfigs({
        validateOnly: false,
        resources: [{ type: 2, name, configEntries: [{ name: "max.message.bytes", value }] }],
      });
    await limit("20000");
    const [record] = one();
    stage.api.script(record.token_id, [{ body: { noise: randomBytes(60_000).toString("hex") } }]);
    const small = refreshOf(stage.api, 3, { collection_address: record.collection_address });
    await stage.submit([record, ...small]);
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({
      error_code: "unable_to_decode_response",
      error_detail: "body_too_large",
      metadata: null,
      content_hash: null,
      response_body: null,
    });
    expect((await stage.outcomesOf(small)).map(({ status_code }) => status_code)).toEqual([200, 200, 200]);
    expect(callsOf(record)).toHaveLength(1);
    await limit("2097152");
    await admin.disconnect();
  });
});
