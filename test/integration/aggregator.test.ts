import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { failure, hashOf, refreshOf, Stage, success } from "./aggregator-stage.ts";

const base = 2 ** 40;
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.create("aggregator");
});
afterEach(() => stage.stopServices());
afterAll(() => stage?.close());

describe("a refresh, from its outcomes to what everybody sees", () => {
  it("leaves exactly these rows and records", async () => {
    const collection = stage.collection();
    const outcomes = refreshOf(
      collection,
      ["7", success('{"name":"seven"}')],
      ["600", failure("invalid_response_status_code", { status_code: 404, response_body: "gone", error_detail: "status" })],
      ["8", failure("token_not_found")],
    );
    const [first] = await stage.produce(outcomes);
    await stage.start();
    const completion = await stage.completed(outcomes);
    const [outcome] = outcomes;
    const version = base + (first?.offset ?? 0);
    const completedAt = (outcome?.created_at ?? 0) + 2;
    expect(completion).toEqual({
      refresh_id: outcome?.refresh_id,
      project_id: 7,
      collection_address: collection,
      requested_at: outcome?.requested_at,
      completed_at: completedAt,
      total: 3,
      succeeded: 1,
      unchanged: 0,
      failed: 2,
      failed_by_code: { invalid_response_status_code: 1, token_not_found: 1 },
    });
    expect(await stage.token(collection, "7")).toEqual({
      metadata: '{"name":"seven"}',
      content_hash: hashOf('{"name":"seven"}'),
      previous_hash: "",
      version: BigInt(version),
      refreshed_at: BigInt(outcome?.created_at ?? 0),
      refresh_id: outcome?.refresh_id,
      registered_at: null,
      written: BigInt(version),
      touched: BigInt(version),
    });
    expect(await stage.progress(completion.refresh_id)).toEqual({
      total: 3,
      done: Buffer.from([0b111]),
      failed: Buffer.from([0b110]),
      succeeded_count: 1,
      unchanged_count: 0,
      failed_count: 2,
      failed_by_code: { invalid_response_status_code: 1, token_not_found: 1 },
      completed_at: BigInt(completedAt),
      completed_version: BigInt(version + 2),
      written: BigInt(version + 2),
      ttl: expect.toSatisfy((ttl: number) => ttl > 90 * 86_400 - 120 && ttl <= 90 * 86_400),
    });
    expect(await stage.errors(completion.refresh_id)).toEqual([
      expect.objectContaining({ ordinal: 2, token_id: "8", status_code: null, response_body: null, error_detail: null }),
      expect.objectContaining({
        ordinal: 1,
        token_id: "600",
        status_code: 404,
        response_body: "gone",
        error_code: "invalid_response_status_code",
        error_detail: "status",
        created_at: BigInt((outcome?.created_at ?? 0) + 1),
        url: "https://api.example.com/600",
        collection_address: collection,
      }),
    ]);
    expect(stage.published(collection, "7")).toEqual([
      {
        collection_address: collection,
        token_id: "7",
        version,
        content_hash: hashOf('{"name":"seven"}'),
        metadata: '{"name":"seven"}',
        refresh_id: outcome?.refresh_id,
        refreshed_at: outcome?.created_at,
      },
    ]);
    expect(await stage.token(collection, "8")).toBeUndefined();
  });

  it("is announced as complete when everything it consists of can be read", async () => {
    const collection = stage.collection();
    const ids = Array.from({ length: 1_000 }, (_, index) => String(index * 7));
    const outcomes = refreshOf(collection, ...ids.map((id) => [id, success(`{"id":${id}}`)] as const));
    await stage.start();
    await stage.produce(outcomes);
    const completion = await stage.completed(outcomes);
    const rows = await Promise.all(ids.map((id) => stage.token(collection, id)));
    expect(rows.map((row) => row?.metadata)).toEqual(ids.map((id) => `{"id":${id}}`));
    expect(completion).toMatchObject({ total: 1_000, succeeded: 1_000, unchanged: 0, failed: 0 });
    await stage.states.until("every state", () => ids.every((id) => stage.published(collection, id).length === 1));
    const [said] = stage.completions.records.filter(({ key }) => key === completion.refresh_id);
    const states = stage.states.records.filter(({ value }) => value.collection_address === collection);
    expect(Math.max(...states.map(({ timestampMs }) => timestampMs))).toBeLessThanOrEqual(said?.timestampMs ?? 0);
  });

  it("carries CloudEvents headers on both public topics", async () => {
    const collection = stage.collection();
    const outcomes = refreshOf(collection, ["1", success("{}")]);
    await stage.start();
    await stage.produce(outcomes);
    const { refresh_id } = await stage.completed(outcomes);
    await stage.states.until("its state", () => stage.published(collection, "1").length > 0);
    const state = stage.states.records.find(({ key }) => key === `${collection}:1`);
    const completion = stage.completions.records.find(({ key }) => key === refresh_id);
    const common = { ce_specversion: "1.0", ce_source: "/asset-metadata-refresh", "content-type": "application/avro" };
    expect(state?.headers).toMatchObject({ ...common, ce_type: "metadata.token.state.v1", ce_id: expect.any(String) });
    expect(completion?.headers).toMatchObject({ ...common, ce_type: "metadata.refresh.completed.v1" });
    expect(completion?.headers.ce_time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  });

  it("keeps every error of a thousand, which are more than one batch may hold", async () => {
    const collection = stage.collection();
    const broken = failure("unable_to_decode_response", { status_code: 200, response_body: "x".repeat(4_096) });
    const ids = Array.from({ length: 1_000 }, (_, index) => String(index));
    const outcomes = refreshOf(collection, ...ids.map((id) => [id, broken] as const));
    await stage.start();
    await stage.produce(outcomes);
    const completion = await stage.completed(outcomes);
    expect(completion).toMatchObject({ failed: 1_000, failed_by_code: { unable_to_decode_response: 1_000 } });
    const errors = await stage.errors(completion.refresh_id);
    expect(new Set(errors.map(({ ordinal }) => ordinal)).size).toBe(1_000);
    expect(errors.every(({ response_body }) => response_body === broken.response_body)).toBe(true);
  });
});

describe("one token in several refreshes", () => {
  it("ends with A when it was A and one poll brings B, then A", async () => {
    const collection = stage.collection();
    const before = refreshOf(collection, ["1", success("A")]);
    await stage.start();
    await stage.produce(before);
    await stage.completed(before);
    await stage.stopServices();
    const [changed, back] = [refreshOf(collection, ["1", success("B")]), refreshOf(collection, ["1", success("A")])];
    const records = await stage.produce([...changed, ...back]);
    await stage.start();
    expect(await stage.completed(changed)).toMatchObject({ unchanged: 0 });
    expect(await stage.completed(back)).toMatchObject({ unchanged: 0 });
    const version = base + (records.at(-1)?.offset ?? 0);
    expect(await stage.latest(collection, "1", version)).toMatchObject({ metadata: "A", version });
    expect(stage.published(collection, "1").map(({ metadata }) => metadata)).toEqual(["A", "B", "A"]);
    expect(await stage.token(collection, "1")).toMatchObject({
      metadata: "A",
      previous_hash: hashOf("B"),
      written: BigInt(version),
    });
  });

  it("ends with the outcome that came last, in table and topic alike, and counts the content that stayed as unchanged", async () => {
    const collection = stage.collection();
    const one = refreshOf(collection, ["1", success("A")], ["2", success("A")], ["3", success("A")]);
    const two = refreshOf(collection, ["3", success("B")], ["1", success("A")], ["2", success("B")]);
    await stage.start();
    const records = await stage.produce([one[0], two[0], two[1], two[2], one[1], one[2]].flatMap((outcome) => outcome ?? []));
    const versions = records.map(({ offset }) => base + offset);
    expect(await stage.completed(two)).toMatchObject({ succeeded: 3, unchanged: 1 });
    expect(await stage.completed(one)).toMatchObject({ succeeded: 3, unchanged: 0 });
    const last = [
      ["1", "A", versions[0], two, versions[2]],
      ["2", "A", versions[4], one, versions[4]],
      ["3", "A", versions[5], one, versions[5]],
    ] as const;
    for (const [id, metadata, version = 0, [refresher], touched = 0] of last) {
      expect(await stage.latest(collection, id, version)).toMatchObject({ metadata, version });
      expect(await stage.token(collection, id)).toMatchObject({
        metadata,
        version: BigInt(version),
        refresh_id: refresher?.refresh_id,
        touched: BigInt(touched),
      });
    }
  });
});

describe("a record that cannot be counted", () => {
  it("goes to the dead letters alone, with its cause, and the others around it count", async () => {
    const collection = stage.collection();
    const outcomes = refreshOf(collection, ["1", success("A")], ["2", success("B")], ["3", failure("token_not_found")]);
    const [one, two, three] = outcomes.map((outcome) => [outcome]);
    const beyond = refreshOf(collection, ["1", success("A")]).map((outcome) => ({ ...outcome, ordinal: 1 }));
    const contradicting = (two ?? []).map((outcome) => ({ ...outcome, total: 4, ordinal: 3 }));
    await stage.produce([one, beyond, two, contradicting, three].flatMap((part) => part ?? []));
    await stage.start();
    expect(await stage.completed(outcomes)).toMatchObject({ succeeded: 2, failed: 1 });
    const letters = await stage.deadLetters.until("two dead letters", (all) => all.length === 2);
    expect(letters.map(({ key, headers }) => [key, headers.dead_letter_cause, headers.dead_letter_message])).toEqual([
      [collection, "rejected", "token.outcome: ordinal 1 of 1 tokens"],
      [collection, "rejected", "token.outcome: a total of 4 in a refresh of 3 tokens"],
    ]);
  });
});
