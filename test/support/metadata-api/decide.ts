import { type Behaviour, metadataText } from "./behaviour.ts";
import type { Random } from "./chance.ts";
import type { Limiter } from "./limiter.ts";
import type { Fault, Latency, Settings } from "./settings.ts";

/** A call as the simulated API sees it. */
export interface SeenCall {
  readonly tokenId: string;
  /** Of this token, 1-based. */
  readonly callNumber: number;
  readonly nowMs: number;
  /** Calls that were admitted and are not answered, without this one. */
  readonly inFlight: number;
  readonly random: Random;
}

export interface Decision {
  readonly behaviour: Behaviour;
  /** By the hidden limit; such a call is not under way for the limit itself. */
  readonly refused: boolean;
}

/** What the API does with a call: hostile mode, then the limit, then the mix of faults, then a good answer. */
export function decide(settings: Settings, limiter: Limiter | undefined, call: SeenCall): Decision {
  if (settings.hostile !== null) return { behaviour: { hostile: settings.hostile }, refused: false };
  if (limiter !== undefined && !limiter(call.nowMs, call.inFlight)) {
    return { behaviour: statusBehaviour(settings, settings.limitStatus), refused: true };
  }
  // First of all that is left to chance: another latency does not change which calls fail.
  const fault = faultOf(settings, call);
  const delayMs = delayOf(settings.latency, call.random);
  const behaviour = fault === undefined ? goodBehaviour(settings, call) : faultBehaviour(settings, fault);
  return { behaviour: delayMs > 0 ? { ...behaviour, delayMs } : behaviour, refused: false };
}

function faultOf({ mix, faultyCalls }: Settings, { callNumber, random }: SeenCall): Fault | undefined {
  if (faultyCalls !== null && callNumber > faultyCalls) return undefined;
  let at = random();
  for (const fault in mix) {
    at -= mix[fault as Fault] ?? 0;
    if (at < 0) return fault as Fault;
  }
  return undefined;
}

function goodBehaviour({ bodyBytes, revision }: Settings, { tokenId, random }: SeenCall): Behaviour {
  const isRange = typeof bodyBytes === "object" && bodyBytes !== null;
  const bytes = isRange ? bodyBytes.from + Math.floor(random() * (bodyBytes.to - bodyBytes.from + 1)) : bodyBytes;
  return { body: metadataText(tokenId, { revision, bytes }) };
}

/** Beyond the cap of 256 KiB on a body. */
const tooLarge = `{"filler":"${"x".repeat(300_000)}"}`;
const page = "<!doctype html><title>Sign in</title><p>Please sign in to go on.</p>";

function faultBehaviour(settings: Settings, fault: Fault): Behaviour {
  switch (fault) {
    case "hang":
      return { hang: true };
    case "reset":
      return { reset: true };
    case "truncated":
      return { hostile: "body-shorter-than-its-length-then-closed" };
    case "not_json":
      return { body: page, headers: { "content-type": "text/html" } };
    case "not_an_object":
      return { body: "[]" };
    case "empty":
      return { body: "" };
    case "too_large":
      return { body: tooLarge };
    default:
      return statusBehaviour(settings, Number(fault));
  }
}

function statusBehaviour({ retryAfter }: Settings, status: number): Behaviour {
  const mayWait = retryAfter !== null && (status === 429 || status === 503);
  const moved = status >= 300 && status < 400 ? { headers: { location: "/elsewhere" } } : {};
  return { status, ...moved, ...(mayWait ? { retryAfter } : {}) };
}

/** z of the 99th percentile of the normal distribution. */
const z99 = 2.326_347_874;

function delayOf(latency: Latency, random: Random): number {
  switch (latency.kind) {
    case "fixed":
      return latency.ms;
    case "range":
      return latency.fromMs + random() * (latency.toMs - latency.fromMs);
    case "distribution": {
      const sigma = Math.log(latency.p99Ms / latency.medianMs) / z99;
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      return Math.min(latency.medianMs * Math.exp(sigma * normal), latency.p99Ms * 10);
    }
  }
}
