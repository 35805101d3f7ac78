import { type Answer, type Refusal, refuse } from "../../common/http/answer.ts";

/** What an API key grants: specification section 8, rules 4 and 5. */
export interface ApiKey {
  readonly projectId: number;
  readonly requestsPerSecond: number;
}

/** Who a request is counted against. */
export interface Caller {
  /** The IP address's bucket. */
  readonly bucket: string;
  /** Known, and not revoked. */
  readonly key: ApiKey | undefined;
}

export interface RateDecision {
  readonly allowed: boolean;
  /** Set when not allowed. */
  readonly retryAfterMs: number;
}

export interface AdmissionPorts {
  /** undefined: no API key at all, unknown or revoked. Rejects when that cannot be told. */
  findKey(text: string): Promise<ApiKey | undefined>;
  takeForAddress(bucket: string): Promise<RateDecision>;
  takeForProject(key: ApiKey): Promise<RateDecision>;
}

export interface AdmissionRequest {
  readonly bucket: string;
  /** Every x-api-key header. */
  readonly apiKeys: readonly string[];
  readonly knownRoute: boolean;
}

/**
 * Counts a request before anything else is done for it. One with a known key is counted against the key's project, every
 * other against its IP address: without a key, with one nobody knows, and on a path that does not exist.
 */
export async function admit(
  request: AdmissionRequest,
  ports: AdmissionPorts,
): Promise<{ readonly ok: true; readonly caller: Caller } | { readonly ok: false; readonly refusal: Refusal }> {
  const { bucket, apiKeys, knownRoute } = request;
  const found = knownRoute ? await identify(apiKeys, ports) : none;
  const decision = found.key === undefined ? await ports.takeForAddress(bucket) : await ports.takeForProject(found.key);
  if (!decision.allowed) return { ok: false, refusal: refuseRate(decision) };
  if (found.refusal !== undefined) return { ok: false, refusal: found.refusal };
  return { ok: true, caller: { bucket, key: found.key } };
}

/**
 * A key by itself proves nothing: whoever holds one and fails to sign, or asks for what is not there, is counted against the
 * address as well, so that guessing with a leaked key is as slow as without one.
 */
export async function countFailure(
  caller: Caller,
  answer: Answer,
  ports: Pick<AdmissionPorts, "takeForAddress">,
): Promise<Answer> {
  if (caller.key === undefined || ![401, 403, 404].includes(answer.status)) return answer;
  const decision = await ports.takeForAddress(caller.bucket);
  return decision.allowed ? answer : refuseRate(decision);
}

interface Identified {
  readonly key?: ApiKey;
  readonly refusal?: Refusal;
}

const none: Identified = {};

async function identify(apiKeys: readonly string[], { findKey }: AdmissionPorts): Promise<Identified> {
  const [text, second] = apiKeys;
  if (text === undefined) return none;
  if (second !== undefined) return { refusal: refuse(401, "invalid_api_key", "x-api-key is given twice") };
  try {
    const key = await findKey(text);
    return key === undefined ? { refusal: refuse(401, "invalid_api_key", "x-api-key is not a key in use") } : { key };
  } catch {
    return { refusal: refuse(503, "unavailable", "API keys cannot be checked now", { headers: { "retry-after": "2" } }) };
  }
}

function refuseRate({ retryAfterMs }: RateDecision): Refusal {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
  return refuse(429, "rate_limit_exceeded", "too many requests: wait, and then wait longer each time", {
    headers: { "retry-after": String(seconds) },
  });
}
