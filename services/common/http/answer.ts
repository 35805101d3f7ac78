/**
 * Every code that an error body of the HTTP interfaces may carry. A closed list: the OpenAPI document shows it, clients may
 * switch on it. `refresh_limit_exceeded` is the specification's (section 7.1), the others are ours.
 */
export const refusalCodes = [
  "invalid_request",
  "invalid_signature",
  "invalid_api_key",
  "unauthorized",
  "not_the_owner",
  "not_found",
  "method_not_allowed",
  "conflict",
  "payload_too_large",
  "unsupported_media_type",
  "idempotency_key_reused",
  "refresh_limit_exceeded",
  "rate_limit_exceeded",
  "acceptance_unknown",
  "unavailable",
] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** One thing that is wrong with a request: which field, what rule, where (`token_ids[3]`). */
export interface Problem {
  readonly field: string;
  readonly rule: string;
  readonly message: string;
}

/** What a handler answers; expected refusals are answers too, never exceptions. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The body of every error: README, The API. */
export interface RefusalBody {
  readonly code: RefusalCode;
  readonly message: string;
  readonly details?: readonly Problem[];
}

export interface Refusal extends Answer {
  readonly body: RefusalBody;
}

export function refuse(
  status: number,
  code: RefusalCode,
  message: string,
  options: {
    details?: readonly Problem[];
    headers?: Readonly<Record<string, string>>;
  } = {},
): Refusal {
  const { details, headers } = options;
  return {
    status,
    body: { code, message, ...(details === undefined ? {} : { details }) },
    ...(headers === undefined ? {} : { headers }),
  };
}
