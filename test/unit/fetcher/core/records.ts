import { loadTopics } from "../../../../services/common/kafka/topics.ts";
import type { TokenRefresh } from "../../../../services/common/messages/records.ts";
import type { CallFailed, CallSucceeded } from "../../../../services/fetcher/core/results.ts";

export const topics = loadTopics();
export const rules = { maxAttempts: 3, tiers: topics.retryTiers };

const requestedAt = 1_790_000_000_000_000;

/** One token refresh, as the splitter writes it. */
export function tokenRefresh(changes: Partial<TokenRefresh> = {}): TokenRefresh {
  return {
    refresh_id: "0f9f0cf0-9a8c-4f3e-8a58-0d6e7b1f2a11",
    ordinal: 0,
    total: 1,
    project_id: 7,
    collection_address: "0x1111111111111111111111111111111111111111",
    token_id: "42",
    requested_at: requestedAt,
    deadline: requestedAt + 172_800_000_000,
    metadata_api_url: "https://api.example.com/tokens",
    max_concurrency: null,
    max_requests_per_second: null,
    emission: 1,
    attempt: 1,
    first_queued_at: requestedAt,
    attempts: [],
    ...changes,
  };
}

const measured = { startedAtMs: 1_790_000_001_000, durationMs: 12.4, bodyBytes: 12 };

export function success(changes: Partial<CallSucceeded> = {}): CallSucceeded {
  return { ok: true, text: '{"name":"a"}', contentHash: "5d4c", ...measured, ...changes };
}

export function failure(changes: Partial<CallFailed> = {}): CallFailed {
  return { ok: false, detail: "unexpected_status", status: 404, excerpt: "no such token", ...measured, ...changes };
}
