import { microsFromMs } from "../../common/clock.ts";
import type { Attempt, TokenOutcome, TokenRefresh } from "../../common/messages/records.ts";
import { tokenUrl } from "../../common/messages/token-url.ts";
import {
  type CallFailed,
  type CallResult,
  type CallSucceeded,
  detailOfStatus,
  type ErrorDetail,
  errorCodeOf,
} from "./results.ts";

/** The entry that a call leaves in a record's list of attempts. */
export function attemptOf(result: CallResult): Attempt {
  return {
    at: microsFromMs(result.startedAtMs),
    status: result.ok ? 200 : result.status,
    duration_ms: Math.round(result.durationMs),
    body_bytes: result.bodyBytes,
    cause: result.ok ? null : result.detail,
  };
}

export function succeeded(refresh: TokenRefresh, result: CallSucceeded): TokenOutcome {
  return outcome(refresh, {
    created_at: endedAt(result),
    status_code: 200,
    metadata: result.text,
    content_hash: result.contentHash,
    attempts: [...refresh.attempts, attemptOf(result)],
  });
}

export function failed(refresh: TokenRefresh, result: CallFailed): TokenOutcome {
  return outcome(refresh, {
    created_at: endedAt(result),
    detail: result.detail,
    status_code: result.status,
    response_body: result.excerpt,
    attempts: [...refresh.attempts, attemptOf(result)],
  });
}

/** For a record past its deadline. Everything comes from the record, the time too: a replay gives the same bytes. */
export function closedByDeadline(refresh: TokenRefresh): TokenOutcome {
  return outcome(refresh, { created_at: refresh.deadline, detail: "deadline_exceeded" });
}

/** For a record whose attempts are used up already, as after MAX_ATTEMPTS was lowered: it ends as its last attempt did. */
export function closedByLastAttempt(refresh: TokenRefresh, last: Attempt): TokenOutcome {
  return outcome(refresh, {
    created_at: last.at + microsFromMs(last.duration_ms),
    detail: last.status === null ? "timeout" : detailOfStatus(last.status),
    status_code: last.status,
  });
}

/** For an outcome that the log refuses for its size; undefined when nothing can be left out of it any more. */
export function withoutBody(outcome: TokenOutcome): TokenOutcome | undefined {
  if (outcome.metadata === null && outcome.response_body === null) return undefined;
  return {
    ...outcome,
    metadata: null,
    content_hash: null,
    response_body: null,
    error_code: outcome.error_code ?? errorCodeOf("body_too_large"),
    error_detail: outcome.error_detail ?? ("body_too_large" satisfies ErrorDetail),
  };
}

function endedAt(result: CallResult): number {
  return microsFromMs(result.startedAtMs + result.durationMs);
}

/** How a token ended; what is left out is null. */
interface Ending extends Partial<Pick<TokenOutcome, "status_code" | "metadata" | "content_hash" | "response_body" | "attempts">> {
  readonly created_at: number;
  /** Absent for a success. */
  readonly detail?: ErrorDetail;
}

function outcome(refresh: TokenRefresh, ending: Ending): TokenOutcome {
  const { detail } = ending;
  return {
    refresh_id: refresh.refresh_id,
    ordinal: refresh.ordinal,
    total: refresh.total,
    project_id: refresh.project_id,
    collection_address: refresh.collection_address,
    token_id: refresh.token_id,
    requested_at: refresh.requested_at,
    created_at: ending.created_at,
    emission: refresh.emission,
    url: tokenUrl(refresh.metadata_api_url, refresh.token_id),
    status_code: ending.status_code ?? null,
    metadata: ending.metadata ?? null,
    content_hash: ending.content_hash ?? null,
    error_code: detail === undefined ? null : errorCodeOf(detail),
    error_detail: detail ?? null,
    response_body: ending.response_body ?? null,
    attempts: ending.attempts ?? refresh.attempts,
  };
}
