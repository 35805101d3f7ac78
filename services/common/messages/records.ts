/**
 * The records that travel between the services, as their Avro schemas in schemas/avro describe them, field by field.
 * Times are micros since the epoch, addresses lower-case 0x hexadecimal, token ids decimal strings.
 */

/** Why a token failed: specification section 7.2. */
export const errorCodes = [
  "unable_to_retrieve_metadata",
  "invalid_response_status_code",
  "unable_to_decode_response",
  "token_not_found",
] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** Which tokens of a collection exist: only registered ones, or any. */
export type TokenPolicy = "registered" | "open";

/** One accepted refresh (`refresh.requested`); key: refresh id. */
export interface RefreshRequested {
  readonly refresh_id: string;
  readonly project_id: number;
  readonly collection_address: string;
  readonly token_ids: readonly string[];
  readonly requested_at: number;
  readonly deadline: number;
  readonly metadata_api_url: string;
  readonly token_policy: TokenPolicy;
  readonly max_concurrency: number | null;
  readonly max_requests_per_second: number | null;
}

/** One call that was made; `cause` is the error_detail, null for a success. */
export interface Attempt {
  readonly at: number;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly body_bytes: number;
  readonly cause: string | null;
}

/** One token on its way to the Metadata API (`token.requested` and the delay tiers); key: project id. */
export interface TokenRefresh {
  readonly refresh_id: string;
  readonly ordinal: number;
  readonly total: number;
  readonly project_id: number;
  readonly collection_address: string;
  readonly token_id: string;
  readonly requested_at: number;
  readonly deadline: number;
  readonly metadata_api_url: string;
  readonly max_concurrency: number | null;
  readonly max_requests_per_second: number | null;
  readonly emission: number;
  /** The attempt to be made next, from 1. */
  readonly attempt: number;
  readonly first_queued_at: number;
  readonly attempts: readonly Attempt[];
}

/** How one token of a refresh ended, or an order to publish a token again (`token.outcome`); key: collection address. */
export interface TokenOutcome {
  readonly refresh_id: string;
  readonly ordinal: number;
  readonly total: number;
  readonly project_id: number;
  readonly collection_address: string;
  readonly token_id: string;
  readonly requested_at: number;
  readonly created_at: number;
  readonly emission: number;
  readonly url: string;
  readonly status_code: number | null;
  /** Set, with content_hash, when and only when the token succeeded. */
  readonly metadata: string | null;
  readonly content_hash: string | null;
  /** Set when and only when the token failed. */
  readonly error_code: ErrorCode | null;
  readonly error_detail: string | null;
  readonly response_body: string | null;
  readonly attempts: readonly Attempt[];
  /** Set on what republishOrder makes, which is no outcome; the others leave it out and are read as false. */
  readonly republish?: boolean;
}

/** One check on a refresh that may be stuck (`refresh.watchdog-1h`); key: refresh id. */
export interface RefreshWatchdog {
  readonly check: number;
  readonly emission: number;
  readonly refresh: RefreshRequested;
}

/** The latest metadata of a token (`token.state`, compacted); key: `collection:token`. */
export interface TokenState {
  readonly collection_address: string;
  readonly token_id: string;
  readonly version: number;
  readonly content_hash: string;
  readonly metadata: string;
  readonly refresh_id: string;
  readonly refreshed_at: number;
}

/** The fact that a refresh has ended (`refresh.completed`); key: refresh id. */
export interface RefreshCompleted {
  readonly refresh_id: string;
  readonly project_id: number;
  readonly collection_address: string;
  readonly requested_at: number;
  readonly completed_at: number;
  readonly total: number;
  readonly succeeded: number;
  readonly unchanged: number;
  readonly failed: number;
  readonly failed_by_code: Readonly<Record<string, number>>;
}
