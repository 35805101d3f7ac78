import type { RefreshRequested, TokenOutcome, TokenRefresh } from "../../common/messages/records.ts";
import { tokenUrl } from "../../common/messages/token-url.ts";

/** What is still to be done for a refresh: tokens to be called, and outcomes of tokens that never will be. */
export interface Split {
  readonly requested: readonly TokenRefresh[];
  readonly outcomes: readonly TokenOutcome[];
}

export interface SplitOptions {
  /** Ordinals without an outcome, ascending. */
  readonly ordinals: readonly number[];
  readonly isKnown: (tokenId: string) => boolean;
  readonly emission: number;
}

/** The refresh in single tokens, in the order of the request. Every byte comes from the record: a replay splits alike. */
export function splitRefresh(refresh: RefreshRequested, { ordinals, isKnown, emission }: SplitOptions): Split {
  const requested: TokenRefresh[] = [];
  const outcomes: TokenOutcome[] = [];
  for (const ordinal of ordinals) {
    if (isKnown(tokenAt(refresh, ordinal))) requested.push(firstAttempt(refresh, ordinal, emission));
    else outcomes.push(notFound(refresh, ordinal, emission));
  }
  return { requested, outcomes };
}

/** Closes what is left of a refresh that ran out of time, dated at `createdAt` (micros): specification section 7.2. */
export function closeRefresh(
  refresh: RefreshRequested,
  options: { ordinals: readonly number[]; emission: number; createdAt: number },
): TokenOutcome[] {
  const { ordinals, emission, createdAt } = options;
  return ordinals.map((ordinal) => ({
    ...uncalled(refresh, ordinal, emission),
    created_at: createdAt,
    error_code: "unable_to_retrieve_metadata",
    error_detail: "deadline_exceeded",
  }));
}

/** `done`: bit (ordinal & 7) of byte (ordinal >> 3) is set for a token that has an outcome; undefined when none has. */
export function missingOrdinals(total: number, done: Uint8Array | undefined): number[] {
  const missing: number[] = [];
  for (let ordinal = 0; ordinal < total; ordinal++) {
    if ((((done?.[ordinal >> 3] ?? 0) >> (ordinal & 7)) & 1) === 0) missing.push(ordinal);
  }
  return missing;
}

function firstAttempt(refresh: RefreshRequested, ordinal: number, emission: number): TokenRefresh {
  return {
    ...common(refresh, ordinal),
    deadline: refresh.deadline,
    metadata_api_url: refresh.metadata_api_url,
    max_concurrency: refresh.max_concurrency,
    max_requests_per_second: refresh.max_requests_per_second,
    emission,
    attempt: 1,
    first_queued_at: refresh.requested_at,
    attempts: [],
  };
}

function notFound(refresh: RefreshRequested, ordinal: number, emission: number): TokenOutcome {
  return {
    ...uncalled(refresh, ordinal, emission),
    created_at: refresh.requested_at,
    error_code: "token_not_found",
    error_detail: "not_registered",
  };
}

function uncalled(refresh: RefreshRequested, ordinal: number, emission: number) {
  return {
    ...common(refresh, ordinal),
    emission,
    url: tokenUrl(refresh.metadata_api_url, tokenAt(refresh, ordinal)),
    status_code: null,
    metadata: null,
    content_hash: null,
    response_body: null,
    attempts: [],
  };
}

function common(refresh: RefreshRequested, ordinal: number) {
  return {
    refresh_id: refresh.refresh_id,
    ordinal,
    total: refresh.token_ids.length,
    project_id: refresh.project_id,
    collection_address: refresh.collection_address,
    token_id: tokenAt(refresh, ordinal),
    requested_at: refresh.requested_at,
  };
}

function tokenAt(refresh: RefreshRequested, ordinal: number): string {
  const tokenId = refresh.token_ids[ordinal];
  if (tokenId === undefined) throw new RangeError(`refresh ${refresh.refresh_id} has no ordinal ${ordinal}`);
  return tokenId;
}
