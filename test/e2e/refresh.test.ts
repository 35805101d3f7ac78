import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintedTokenIds, oddities, requestedTokenIds, startSampleApi } from "../../deploy/demo/sample-collection.ts";
import { Ledger } from "../support/ledger.ts";
import type { Behaviour } from "../support/metadata-api.ts";
import { TestSystem, tokenIdsFrom } from "../support/system.ts";

const firstTierMs = 300;
const secondTierMs = 900;

let system: TestSystem;
let ledger: Ledger;

beforeAll(async () => {
  const delays = `retry-2s=${firstTierMs},retry-10s=${secondTierMs},retry-60s=2000,retry-600s=4000`;
  system = await TestSystem.start("e2e", { delays });
  ledger = await Ledger.open(system.environment);
});

afterAll(async () => {
  await ledger?.close();
  await system?.close();
});

it("refreshes the sample collection to exact counts and error rows", async () => {
  const api = await startSampleApi();
  try {
    const project = await system.createProject({ tokenIds: mintedTokenIds, api });
    const refreshId = await system.refresh(project, requestedTokenIds);
    await system.completed(project, refreshId);
    const failing = new Map(
      Object.entries({
        "404": "invalid_response_status_code",
        "an HTML page instead of JSON": "unable_to_decode_response",
        "no answer at all": "unable_to_retrieve_metadata",
      }),
    );
    const failed = new Map(requestedTokenIds.slice(mintedTokenIds.length).map((tokenId) => [tokenId, "token_not_found"]));
    for (const { what, tokenIds } of oddities) {
      const code = failing.get(what);
      if (code !== undefined) for (const tokenId of tokenIds) failed.set(tokenId, code);
    }
    await ledger.check({ project, refreshId, tokenIds: requestedTokenIds, failed });
    const refusing = oddities.filter(({ what }) => what.includes("at first")).flatMap(({ tokenIds }) => tokenIds);
    for (const tokenId of refusing) expect(api.callsOf(tokenId), `calls of token ${tokenId}`).toHaveLength(2);
  } finally {
    await api.close();
  }
});

describe("a token fails with", () => {
  const json = { "content-type": "application/json" };
  it.each<[string, string, Behaviour, { status: number | null; body: string | null; calls: number }]>([
    ["unable_to_retrieve_metadata", "timeout", { hang: true }, { status: null, body: null, calls: 1 }],
    ["unable_to_retrieve_metadata", "reset", { reset: true }, { status: null, body: null, calls: 1 }],
    ["invalid_response_status_code", "unexpected_status", { status: 404, body: "gone" }, { status: 404, body: "gone", calls: 1 }],
    ["invalid_response_status_code", "unexpected_status", { status: 500, body: "" }, { status: 500, body: "", calls: 1 }],
    ["invalid_response_status_code", "unexpected_status", { status: 204, body: "" }, { status: 204, body: "", calls: 1 }],
    [
      "invalid_response_status_code",
      "redirect",
      { status: 302, headers: { location: "/x" }, body: "" },
      { status: 302, body: "", calls: 1 },
    ],
    [
      "invalid_response_status_code",
      "service_unavailable",
      { status: 503, body: "later" },
      { status: 503, body: "later", calls: 3 },
    ],
    [
      "invalid_response_status_code",
      "rate_limited",
      { status: 429, body: "slow down" },
      { status: 429, body: "slow down", calls: 3 },
    ],
    ["unable_to_decode_response", "not_json", { body: "{", headers: json }, { status: 200, body: "{", calls: 1 }],
    [
      "unable_to_decode_response",
      "not_utf8",
      { body: Buffer.from([0x7b, 0xff, 0x7d]) },
      { status: 200, body: "{\ufffd}", calls: 1 },
    ],
    ["unable_to_decode_response", "not_an_object", { body: "[1]", headers: json }, { status: 200, body: "[1]", calls: 1 }],
  ])("%s (%s) after %o", async (code, detail, behaviour, { status, body, calls }) => {
    const project = await system.createProject();
    project.api.script("7", [behaviour]);
    const refreshId = await system.refresh(project, ["7", "8"]);
    await system.completed(project, refreshId);
    await ledger.check({ project, refreshId, tokenIds: ["7", "8"], failed: new Map([["7", code]]) });
    const [error] = await project.owner.listErrors(refreshId);
    expect(error).toMatchObject({
      token_id: "7",
      collection_address: project.collection,
      client_token_metadata_url: `${project.api.url}/7`,
      client_response_status_code: status,
      client_response_body: body,
      error_code: code,
      error_detail: detail,
    });
    expect(project.api.callsOf("7")).toHaveLength(calls);
  });

  it("token_not_found without a call when it was never registered", async () => {
    const project = await system.createProject({ tokenIds: ["1"] });
    const refreshId = await system.refresh(project, ["1", "2"]);
    await system.completed(project, refreshId);
    await ledger.check({ project, refreshId, tokenIds: ["1", "2"], failed: new Map([["2", "token_not_found"]]) });
    const [error] = await project.owner.listErrors(refreshId);
    expect(error).toMatchObject({
      client_token_metadata_url: `${project.api.url}/2`,
      client_response_status_code: null,
      client_response_body: null,
    });
    expect(project.api.callsOf("2")).toEqual([]);
  });
});

describe("a token that is refused", () => {
  it("is called again after the first tier's delay, then after the second's, and never earlier", async () => {
    const project = await system.createProject();
    project.api.script("7", [{ status: 503 }, { status: 429 }, {}]);
    const refreshId = await system.refresh(project, ["7"]);
    await system.completed(project, refreshId);
    await ledger.check({ project, refreshId, tokenIds: ["7"] });
    const calls = project.api.callsOf("7");
    expect(calls).toHaveLength(3);
    const waits = calls.slice(1).map(({ monotonicMs }, index) => monotonicMs - (calls[index]?.answeredMonotonicMs ?? 0));
    expect(waits[0]).toBeGreaterThanOrEqual(firstTierMs);
    expect(waits[1]).toBeGreaterThanOrEqual(secondTierMs);
  });

  it("with Retry-After is not called before that time is over", async () => {
    const project = await system.createProject();
    project.api.script("7", [{ status: 429, retryAfter: 1 }, {}]);
    const refreshId = await system.refresh(project, ["7"]);
    await system.completed(project, refreshId);
    await ledger.check({ project, refreshId, tokenIds: ["7"] });
    const [refused, again] = project.api.callsOf("7");
    expect((again?.monotonicMs ?? 0) - (refused?.answeredMonotonicMs ?? 0)).toBeGreaterThanOrEqual(1_000);
  });
});

describe("a host that asks to be left alone", () => {
  it("gets no call at all for as long as it said, for no token, and then every token succeeds", async () => {
    const project = await system.createProject({ maxConcurrency: 1 });
    const { api } = project;
    api.otherwise(() => (api.calls.length === 1 ? { status: 429, retryAfter: 2 } : {}));
    const tokenIds = tokenIdsFrom(1, 8);
    const refreshId = await system.refresh(project, tokenIds);
    await system.completed(project, refreshId);
    await ledger.check({ project, refreshId, tokenIds });
    const [refused, ...later] = api.calls;
    expect(later).toHaveLength(8);
    const firstAgainMs = Math.min(...later.map(({ monotonicMs }) => monotonicMs));
    expect(firstAgainMs - (refused?.answeredMonotonicMs ?? Number.NaN)).toBeGreaterThanOrEqual(2_000);
  });
});

describe("a marketplace", () => {
  it("is told what changed, before the completion, and nothing when nothing changed", async () => {
    const project = await system.createProject();
    const tokenIds = tokenIdsFrom(1, 50);
    const first = await system.refresh(project, tokenIds);
    await system.completed(project, first);
    await ledger.check({ project, refreshId: first, tokenIds });
    expect(ledger.latestStates(project.collection).size).toBe(50);

    const callsBefore = project.api.calls.length;
    const second = await system.refresh(project, tokenIds);
    await system.completed(project, second);
    await ledger.check({ project, refreshId: second, tokenIds, callsBefore });
    expect((await ledger.completionOf(second)).value.unchanged).toBe(50);
    expect(ledger.states.records.filter(({ value }) => value.refresh_id === second)).toEqual([]);
    const row = await ledger.tokenRow(project.collection, "1");
    expect(row?.refresh_id).toBe(second);
  });

  it("and the table end with the same, later outcome of two overlapping refreshes of a token", async () => {
    const project = await system.createProject();
    const tokenIds = tokenIdsFrom(1, 40);
    project.api.otherwise((tokenId, call) => ({
      delayMs: call === 1 ? 400 : 20,
      body: { name: `token ${tokenId}, read ${call}` },
    }));
    const refreshes = await Promise.all([system.refresh(project, tokenIds), system.refresh(project, tokenIds)]);
    for (const refreshId of refreshes) await system.completed(project, refreshId);
    for (const refreshId of refreshes) await ledger.completionOf(refreshId);

    const latest = ledger.latestStates(project.collection);
    for (const tokenId of tokenIds) {
      const outcomes = ledger.outcomes.records.filter(
        ({ value }) => value.collection_address === project.collection && value.token_id === tokenId,
      );
      const last = outcomes.toSorted((a, b) => a.offset - b.offset).at(-1);
      const row = await ledger.tokenRow(project.collection, tokenId);
      expect(outcomes).toHaveLength(2);
      expect(row?.metadata).toBe(last?.value.metadata);
      expect(row?.refresh_id).toBe(last?.value.refresh_id);
      expect(latest.get(tokenId)?.value.metadata).toBe(last?.value.metadata);
      expect(BigInt(latest.get(tokenId)?.value.version ?? 0)).toBe(row?.version);
    }
  });
});
