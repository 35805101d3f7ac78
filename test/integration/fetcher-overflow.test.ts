import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TokenRefresh } from "../../services/common/messages/records.ts";
import { type MetadataApi, startMetadataApi } from "../support/metadata-api.ts";
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
    slowApi.otherwise({ delayMs: 400 });
    const slow = refreshesOf(slowApi, 4_000, { max_concurrency: 4 });
    const fast = refreshOf(stage.api, 300, { project_id: neighbourOf(slow[0]?.project_id ?? 0) });
    await stage.submit(slow);
    await stage.submit(fast);
    const service = await stage.start({ WINDOW_RECORDS: "1500" });
    await stage.outcomesOf(fast, 60_000);
    const calledBefore = slowApi.calls.length;
    // Only what was moved away can be committed: the slow ones are far from called.
    await stage.allCommitted([stage.environment.topics.tokenRequested]);
    expect(calledBefore).toBeLessThan(1_000);
    expect(slowApi.calls.length).toBeLessThan(2_000);
    slowApi.otherwise({});
    const outcomes = await stage.outcomesOf(slow, 90_000);
    await stage.allCommitted();
    expect(new Set(outcomes.map(({ status_code, attempts }) => `${status_code} after ${attempts.length}`))).toEqual(
      new Set(["200 after 1"]),
    );
    expect(callCounts(slowApi, slow)).toEqual(new Set([1]));
    const moved = tierNames.flatMap((name) => stage.tier(name).records);
    expect(moved.length).toBeGreaterThan(1_000);
    expect(new Set(moved.map(({ value }) => value.attempt))).toEqual(new Set([1]));
    expect(new Set(moved.map(({ value }) => value.first_queued_at))).toEqual(
      new Set(slow.map((record) => record.first_queued_at)),
    );
    const { body } = await service.metrics.text();
    expect(body).toMatch(/overflow_records_total\{[^}]*\} [1-9]/);
    await service.stop();
    expect(service.failures).toEqual([]);
  }, 180_000);
});

describe("a host that asks to be left alone", () => {
  it("is called by nobody for as long as it said, and the tokens that wait for it spend no attempt", async () => {
    slowApi.otherwise(() => (slowApi.calls.length === 1 ? { status: 429, retryAfter: 2 } : {}));
    const service = await stage.start();
    const records = refreshOf(slowApi, 8, { max_concurrency: 1 });
    await stage.submit(records);
    const outcomes = await stage.outcomesOf(records, 40_000);
    const [refused, ...later] = slowApi.calls;
    const refusedAtMs = refused?.answeredMonotonicMs ?? Number.NaN;
    expect(Math.min(...later.map(({ monotonicMs }) => monotonicMs)) - refusedAtMs).toBeGreaterThanOrEqual(2_000);
    const statuses = outcomes.map(({ attempts }) => attempts.map(({ status }) => status).join());
    expect(statuses.toSorted()).toEqual([...Array.from({ length: 7 }, () => "200"), "429,200"]);
    await service.stop();
    expect(service.failures).toEqual([]);
  });
});
