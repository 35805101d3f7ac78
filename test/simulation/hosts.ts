import { createHash } from "node:crypto";
import type { CallFailed, CallResult } from "../../services/fetcher/core/results.ts";
import { Chance } from "./chance.ts";

/** How a project's Metadata API behaves. Shares are of calls; what is left of 1 is a good answer. */
export interface HostPlan {
  readonly latencyMs: number;
  readonly busyShare: number;
  readonly missingShare: number;
  readonly hangingShare: number;
  readonly brokenShare: number;
  /** Answers this many calls at once, the others with 429. */
  readonly callsAtOnce: number;
  readonly retryAfterMs: number | undefined;
  /** Everything is 503, or hangs. */
  readonly outage: { readonly fromMs: number; readonly untilMs: number; readonly hangs: boolean };
  /** Every token says something new after so long. */
  readonly revisionMs: number;
}

export interface HostAnswer {
  readonly afterMs: number;
  readonly status: 200 | 404 | 429 | 503 | "hang";
  readonly text: string;
}

const deadlineMs = 3_000;

/** Answers as planned. The chance of a call hangs on the token and on how often it was called, not on the order of arrival. */
export class Host {
  readonly #plan: HostPlan;
  readonly #seed: number;
  readonly #calls = new Map<string, number>();
  #underWay = 0;

  constructor(plan: HostPlan, seed: number) {
    this.#plan = plan;
    this.#seed = seed;
  }

  get retryAfterMs(): number | undefined {
    return this.#plan.retryAfterMs;
  }

  arrive(path: string, nowMs: number): HostAnswer {
    const call = (this.#calls.get(path) ?? 0) + 1;
    this.#calls.set(path, call);
    this.#underWay += 1;
    const chance = new Chance(this.#seed + 7_919 * call + hashOf(path));
    const status = this.#status(chance, nowMs);
    const text = this.#text(path, status, { nowMs, broken: status === 200 && chance.happens(this.#plan.brokenShare) });
    const afterMs = status === "hang" ? deadlineMs : Math.min(deadlineMs, chance.wait(this.#plan.latencyMs));
    return { afterMs, status: afterMs >= deadlineMs ? "hang" : status, text };
  }

  left(): void {
    this.#underWay -= 1;
  }

  #status(chance: Chance, nowMs: number): HostAnswer["status"] {
    const { outage, busyShare, missingShare, hangingShare, callsAtOnce } = this.#plan;
    if (nowMs >= outage.fromMs && nowMs < outage.untilMs) return outage.hangs ? "hang" : 503;
    if (this.#underWay > callsAtOnce) return 429;
    if (chance.happens(busyShare)) return 503;
    if (chance.happens(missingShare)) return 404;
    return chance.happens(hangingShare) ? "hang" : 200;
  }

  /** Spaced as no serialiser does it: stored is what was sent. */
  #text(path: string, status: HostAnswer["status"], { nowMs, broken }: { nowMs: number; broken: boolean }): string {
    if (broken) return `{"token": "${path}`;
    const token = path.slice(path.lastIndexOf("/") + 1);
    return status === 200 ? `{ "token":"${token}",  "revision": ${Math.floor(nowMs / this.#plan.revisionMs)}.0 }` : "sorry";
  }
}

function hashOf(text: string): number {
  let hash = 17;
  for (const character of text) hash = (Math.imul(hash, 31) + character.charCodeAt(0)) | 0;
  return hash;
}

/** As the fetcher's adapter tells it. */
export function resultOf(answer: HostAnswer, options: { startedAtMs: number; retryAfterMs: number | undefined }): CallResult {
  const { afterMs: durationMs, status, text } = answer;
  const measured = { startedAtMs: options.startedAtMs, durationMs, bodyBytes: text.length };
  if (status === "hang") return failure("timeout", null, { ...measured, bodyBytes: 0 });
  if (status === 404) return failure("unexpected_status", 404, measured);
  if (status !== 200) {
    const asked = options.retryAfterMs === undefined ? {} : { retryAfterMs: options.retryAfterMs };
    return { ...failure(status === 429 ? "rate_limited" : "service_unavailable", status, measured), ...asked };
  }
  if (!text.endsWith("}")) return failure("not_json", 200, measured);
  return { ok: true, text, contentHash: createHash("sha256").update(text).digest("hex"), ...measured };
}

function failure(
  detail: CallFailed["detail"],
  status: number | null,
  measured: Pick<CallFailed, "startedAtMs" | "durationMs" | "bodyBytes">,
): CallFailed {
  return { ok: false, detail, status, excerpt: status === null ? null : "sorry", ...measured };
}
