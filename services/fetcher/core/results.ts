import type { AddressBlock } from "../../common/http/address-guard.ts";
import type { ErrorCode } from "../../common/messages/records.ts";

/** Every `error_detail` that the fetcher gives, with the code of specification section 7.2 that it refines. */
const codes = {
  timeout: "unable_to_retrieve_metadata",
  dns: "unable_to_retrieve_metadata",
  connect: "unable_to_retrieve_metadata",
  tls: "unable_to_retrieve_metadata",
  reset: "unable_to_retrieve_metadata",
  protocol: "unable_to_retrieve_metadata",
  headers_too_large: "unable_to_retrieve_metadata",
  blocked_address: "unable_to_retrieve_metadata",
  invalid_url: "unable_to_retrieve_metadata",
  /** The record's own deadline passed before the token got an answer: no call was made for this. */
  deadline_exceeded: "unable_to_retrieve_metadata",
  redirect: "invalid_response_status_code",
  rate_limited: "invalid_response_status_code",
  service_unavailable: "invalid_response_status_code",
  unexpected_status: "invalid_response_status_code",
  body_too_large: "unable_to_decode_response",
  not_utf8: "unable_to_decode_response",
  not_json: "unable_to_decode_response",
  not_an_object: "unable_to_decode_response",
  too_deep: "unable_to_decode_response",
} as const satisfies Record<string, ErrorCode>;

export type ErrorDetail = keyof typeof codes;
export const errorDetails = Object.keys(codes) as readonly ErrorDetail[];

export function errorCodeOf(detail: ErrorDetail): ErrorCode {
  return codes[detail];
}

/** The detail of a status other than 200. A redirect is not followed: README, The call to the Metadata API. */
export function detailOfStatus(status: number): ErrorDetail {
  if (status === 429) return "rate_limited";
  if (status === 503) return "service_unavailable";
  return [301, 302, 303, 307, 308].includes(status) ? "redirect" : "unexpected_status";
}

interface Measured {
  /** Wall clock, when the call was started. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** Bytes of the body that were received. */
  readonly bodyBytes: number;
}

export interface CallSucceeded extends Measured {
  readonly ok: true;
  /** The body exactly as received. */
  readonly text: string;
  /** SHA-256 of the body's bytes, hexadecimal. */
  readonly contentHash: string;
}

export interface CallFailed extends Measured {
  readonly ok: false;
  readonly detail: ErrorDetail;
  /** Null when no status was received. */
  readonly status: number | null;
  /** The beginning of what was received, null when no response was. */
  readonly excerpt: string | null;
  /** What a 429 or 503 asked for, within its bounds; absent when it asked for nothing that makes sense. */
  readonly retryAfterMs?: number;
  /** Why the address was not called; for the operator, never for the owner. */
  readonly block?: AddressBlock;
}

/** What one call to a Metadata API gave. */
export type CallResult = CallSucceeded | CallFailed;
