import type { CallResult } from "../results.ts";

/**
 * What a call says of its host's capacity. `answered`: everything that says nothing of it: a 404 or a broken body is an answer.
 */
export type Verdict = "answered" | "refused" | "timed_out";

export function verdictOf(result: CallResult): Verdict {
  if (result.ok) return "answered";
  if (result.status === 429 || result.status === 503) return "refused";
  return result.detail === "timeout" ? "timed_out" : "answered";
}

/** A call that ended. */
export interface EndedCall {
  readonly verdict: Verdict;
  readonly startedMs: number;
  readonly endedMs: number;
  /** Calls of its queue that were under way when it was started, itself included. */
  readonly inFlight: number;
  readonly lastAttempt: boolean;
  readonly retryAfterMs: number | undefined;
}
