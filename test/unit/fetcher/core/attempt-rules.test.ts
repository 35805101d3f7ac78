import { describe, expect, it } from "vitest";
import type { TokenOutcome } from "../../../../services/common/messages/records.ts";
import { conclude } from "../../../../services/fetcher/core/attempt-rules.ts";
import { errorDetails } from "../../../../services/fetcher/core/results.ts";
import { failure, rules, success, tokenRefresh, topics } from "./records.ts";

const [tier2s, tier10s, tier60s, tier600s] = topics.retryTiers;

function outcomeOf(
  ...[refresh, result, limits = rules]: [Parameters<typeof conclude>[0], Parameters<typeof conclude>[1], typeof rules?]
): TokenOutcome {
  const conclusion = conclude(refresh, result, limits);
  if (conclusion.kind !== "outcome") throw new Error("was retried");
  return conclusion.outcome;
}

describe("the attempt rules", () => {
  it.each([429, 503])("try a %i again: after 2 s, then after 10 s, and then no more", (status) => {
    const refused = failure({ status, detail: status === 429 ? "rate_limited" : "service_unavailable" });
    const first = conclude(tokenRefresh(), refused, rules);
    expect(first).toMatchObject({ kind: "retry", tier: tier2s, refresh: { attempt: 2, attempts: [{ status }] } });
    if (first.kind !== "retry") throw new Error("not retried");
    const second = conclude(first.refresh, refused, rules);
    expect(second).toMatchObject({ kind: "retry", tier: tier10s, refresh: { attempt: 3, attempts: [{ status }, { status }] } });
    if (second.kind !== "retry") throw new Error("not retried");
    expect(outcomeOf(second.refresh, refused)).toMatchObject({
      error_code: "invalid_response_status_code",
      error_detail: refused.detail,
      status_code: status,
      response_body: "no such token",
      attempts: [{ status }, { status }, { status }],
    });
  });

  it("keep everything of the record but the attempt when it is tried again", () => {
    const refresh = tokenRefresh({ ordinal: 5, total: 9, max_concurrency: 3, emission: 2 });
    const again = conclude(refresh, failure({ status: 503 }), rules);
    expect(again).toMatchObject({ refresh: { ...refresh, attempt: 2, attempts: [expect.anything()] } });
  });

  it.each(errorDetails.filter((detail) => detail !== "rate_limited" && detail !== "service_unavailable"))(
    "end a token at once on %s",
    (detail) => {
      const status = detail === "unexpected_status" ? 500 : null;
      expect(outcomeOf(tokenRefresh(), failure({ detail, status }))).toMatchObject({
        error_detail: detail,
        metadata: null,
        content_hash: null,
      });
    },
  );

  it.each([400, 401, 403, 404, 408, 425, 500, 502, 504, 201, 204, 206, 999])("end a token at once on a status %i", (status) => {
    expect(outcomeOf(tokenRefresh(), failure({ status }))).toMatchObject({
      error_code: "invalid_response_status_code",
      status_code: status,
    });
  });

  it.each([
    [1_000, tier2s],
    [2_000, tier2s],
    [2_001, tier10s],
    [10_000, tier10s],
    [11_000, tier60s],
    [60_000, tier60s],
    [61_000, tier600s],
    [600_000, tier600s],
  ])("put a token off by %i ms with the smallest tier that is long enough", (retryAfterMs, tier) => {
    expect(conclude(tokenRefresh(), failure({ status: 429, retryAfterMs }), rules)).toMatchObject({ tier });
  });

  it("do not let Retry-After shorten the back-off", () => {
    expect(conclude(tokenRefresh({ attempt: 2 }), failure({ status: 429, retryAfterMs: 1_000 }), rules)).toMatchObject({
      tier: tier10s,
    });
  });

  it.each([
    [1, 1],
    [2, 2],
    [3, 3],
  ])("never make more than %i attempts when the setting says so", (maxAttempts, callCount) => {
    let refresh = tokenRefresh();
    let calls = 1;
    for (;;) {
      const conclusion = conclude(refresh, failure({ status: 503 }), { ...rules, maxAttempts });
      if (conclusion.kind === "outcome") break;
      refresh = conclusion.refresh;
      calls += 1;
    }
    expect(calls).toBe(callCount);
  });

  it("give a success its body, its hash and its time, and no trace of a failure", () => {
    const refresh = tokenRefresh();
    expect(outcomeOf(refresh, success())).toEqual({
      refresh_id: refresh.refresh_id,
      ordinal: 0,
      total: 1,
      project_id: 7,
      collection_address: refresh.collection_address,
      token_id: "42",
      requested_at: refresh.requested_at,
      created_at: 1_790_000_001_012_400,
      emission: 1,
      url: "https://api.example.com/tokens/42",
      status_code: 200,
      metadata: '{"name":"a"}',
      content_hash: "5d4c",
      error_code: null,
      error_detail: null,
      response_body: null,
      attempts: [{ at: 1_790_000_001_000_000, status: 200, duration_ms: 12, body_bytes: 12, cause: null }],
    });
  });

  it.each([
    ["timeout", "unable_to_retrieve_metadata"],
    ["dns", "unable_to_retrieve_metadata"],
    ["connect", "unable_to_retrieve_metadata"],
    ["tls", "unable_to_retrieve_metadata"],
    ["reset", "unable_to_retrieve_metadata"],
    ["protocol", "unable_to_retrieve_metadata"],
    ["headers_too_large", "unable_to_retrieve_metadata"],
    ["blocked_address", "unable_to_retrieve_metadata"],
    ["invalid_url", "unable_to_retrieve_metadata"],
    ["redirect", "invalid_response_status_code"],
    ["unexpected_status", "invalid_response_status_code"],
    ["body_too_large", "unable_to_decode_response"],
    ["not_utf8", "unable_to_decode_response"],
    ["not_json", "unable_to_decode_response"],
    ["not_an_object", "unable_to_decode_response"],
    ["too_deep", "unable_to_decode_response"],
  ] as const)("report %s as %s", (detail, code) => {
    expect(outcomeOf(tokenRefresh(), failure({ detail, status: null })).error_code).toBe(code);
  });
});
