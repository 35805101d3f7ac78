import type { Attempt, TokenOutcome } from "./records.ts";

/**
 * What followed an attempt.
 * - retry: it was refused (429 or 503), and another attempt was made after a wait.
 * - final: its cause is not one that is tried again.
 * - attempts_used_up: it was refused, and it was the last that a token gets.
 * - deadline_exceeded: it was refused, and the refresh ran out of time before the next attempt's turn.
 */
export const nextSteps = ["retry", "final", "attempts_used_up", "deadline_exceeded"] as const;
export type NextStep = (typeof nextSteps)[number];

/** One attempt for a failed token as operators and owners see it. `at` in micros, `bytes` of the body that was received. */
export interface AttemptEntry {
  readonly at: number;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly bytes: number;
  /** error_detail of the attempt; null for an answer that was good. */
  readonly cause: string | null;
  readonly next: NextStep;
}

type Failed = Pick<TokenOutcome, "attempts" | "error_detail">;

/** The attempts of a failed token, oldest first. From the record alone: a replay gives the same. */
export function attemptHistory(outcome: Failed): AttemptEntry[] {
  return outcome.attempts.map((attempt, index) => ({
    at: attempt.at,
    status: attempt.status,
    duration_ms: attempt.duration_ms,
    bytes: attempt.body_bytes,
    cause: attempt.cause,
    next: index < outcome.attempts.length - 1 ? "retry" : lastStep(attempt, outcome),
  }));
}

function lastStep({ status }: Attempt, { error_detail }: Failed): NextStep {
  if (error_detail === "deadline_exceeded") return "deadline_exceeded";
  return status === 429 || status === 503 ? "attempts_used_up" : "final";
}

/** The cell `attempts` of refresh_errors, never null. At most 140 bytes for each attempt. */
export function storedAttempts(outcome: Failed): string {
  return JSON.stringify(attemptHistory(outcome));
}

/** What storedAttempts wrote; empty for a row from before the cell was there. */
export function readStoredAttempts(cell: unknown): readonly AttemptEntry[] {
  return typeof cell === "string" ? (JSON.parse(cell) as AttemptEntry[]) : [];
}
