import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TokenRefresh } from "../../services/common/messages/records.ts";
import { type MetadataApi, startMetadataApi } from "../support/metadata-api.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFetcherStage, type FetcherStage, neighbourOf, refreshOf } from "./fetcher-stage.ts";

const tierNames = ["retry-2s", "retry-10s", "retry-60s", "retry-600s"];
let stage: FetcherStage;
let slowApi: MetadataApi;

beforeAll(async () => {
  stage = await createFetcherStage("fetcher-overflow", { delays: "retry-2s=300,retry-10s=1000,retry-60s=2000,retry-600s=4000" });
});
afterAll(() => stage?.close());
beforeEach(async () => {
  slowApi = await startMetadataApi();
  return () => slowApi.close();
});

/** One refresh per thousand tokens, of one project. */
function refreshesOf(api: MetadataApi, count: number, changes: Partial<TokenRefresh>): TokenRefresh[] {
  const [first] = refreshOf(api, 1, changes);
  const same = { project_id: first?.project_id ?? 0, collection_address: first?.collection_address ?? "", ...changes };
  return Array.from({ length: count / 1_000 }, () => refreshOf(api, 1_000, same)).flat();
}

const callCounts = (api: MetadataApi, records: readonly TokenRefresh[]) => {
  const counts = new Map<string, number>();
  for (const { tokenId } of api.calls) counts.set(tokenId, (counts.get(tokenId) ?? 0) + 1);
  return new Set(records.map(({ token_id }) => counts.get(token_id) ?? 0));
};

describe("a slow project with a long backlog", () => {
  it("neither hides a fast one behind it in its partition, nor holds the offsets back, and ends with its attempts unspent", async () => {
    slowApi.otherwise({ delayMs: 1_000 });
    const slow = refreshesOf(slowApi, 3_000, { max_concurrency: 10 });
    const fast = refreshOf(stage.api, 300, { project_id: neighbourOf(slow[0]?.project_id ?? 0) });
    await stage.submit(slow);
    await stage.submit(fast);
    const service = await stage.start({ WINDOW_RECORDS: "1500" });
    await stage.outcomesOf(fast);
    expect(slowApi.calls.length).toBeLessThan(1_000);
    // Only what was moved away can be committed: the slow ones are far from called.
    await stage.allCommitted([stage.environment.topics.tokenRequested]);
    expect(slowApi.calls.length).toBeLessThan(2_000);
    slowApi.otherwise({});
    const outcomes = await stage.outcomesOf(slow, 180_000);
    await stage.allCommitted();
    expect(new Set(outcomes.map(({ status_code, attempts }) => `${status_code} after ${attempts.length}`))).toEqual(
      new Set(["200 after 1"]),
    );
    expect(callCounts(slowApi, slow)).toEqual(new Set([1]));
    const moved = tierNames.flatMap((name) => stage.tier(name).records);
    expect(moved.length).toBeGreaterThan(1_000);
    const before = new Map([...slow, ...fast].map((record) => [record.token_id, record]));
    expect(moved.filter(({ value }) => !isDeepStrictEqual({ ...value }, before.get(value.token_id)))).toEqual([]);
    const { body } = await service.metrics.text();
    expect(body).toMatch(/overflow_records_total\{[^}]*\} [1-9]/);
    await service.stop();
    expect(service.failures).toEqual([]);
  }, 360_000);
});

describe("a delay tier whose records are back before their move is acknowledged", () => {
  let quickStage: FetcherStage;
  beforeAll(async () => {
    quickStage = await createFetcherStage("fetcher-overflow-quick", {
      delays: "retry-2s=1,retry-10s=2,retry-60s=3,retry-600s=4",
    });
    return () => quickStage.close();
  });

  it("loses none of them, and makes each call once", async () => {
    slowApi.otherwise({ delayMs: 200 });
    const slow = refreshesOf(slowApi, 3_000, { max_concurrency: 4 });
    const behind = refreshOf(quickStage.api, 10, { project_id: neighbourOf(slow[0]?.project_id ?? 0) });
    await quickStage.submit([...slow, ...behind]);
    const service = await quickStage.start({ WINDOW_RECORDS: "3000" });
    await waitFor(
      "records were moved",
      () => tierNames.flatMap((name) => quickStage.tier(name).records).length,
      (count) => count > 3_000,
    );
    slowApi.otherwise({});
    await quickStage.outcomesOf(slow, 120_000);
    await quickStage.allCommitted();
    expect(callCounts(slowApi, slow)).toEqual(new Set([1]));
    await service.stop();
    expect(service.failures).toEqual([]);
  }, 240_000);
});

describe("a host that asks to be left alone", () => {
  it("is called by nobody for as long as it said, and the tokens that wait for it spend no attempt", async () => {
    slowApi.otherwise(() => (slowApi.calls.length === 1 ? { status: 429, retryAfter: 2 } : {}));
    const service = await stage.start();
    const records = refreshOf(slowApi, 8, { max_concurrency: 1 });
    await stage.submit(records);
    const outcomes = await stage.outcomesOf(records);
    const [refused, ...later] = slowApi.calls;
    const refusedAtMs = refused?.answeredMonotonicMs ?? Number.NaN;
    expect(Math.min(...later.map(({ monotonicMs }) => monotonicMs)) - refusedAtMs).toBeGreaterThanOrEqual(2_000);
    const statuses = outcomes.map(({ attempts }) => attempts.map(({ status }) => status).join());
    expect(statuses.toSorted()).toEqual([...Array.from({ length: 7 }, () => "200"), "429,200"]);
    await service.stop();
    expect(service.failures).toEqual([]);
  });
});
