import { expect, it } from "vitest";
import { attemptHistory, readStoredAttempts, storedAttempts } from "../../../../services/common/messages/attempt-history.ts";
import type { Attempt } from "../../../../services/common/messages/records.ts";

const attempt = (status: number | null, cause: string | null = null): Attempt => ({
  at: 1_767_225_600_000_000,
  status,
  duration_ms: 3_000,
  body_bytes: 262_144,
  cause,
});

it.each<[string, readonly Attempt[], string | null, readonly string[]]>([
  ["one that no retry helps", [attempt(404)], "unexpected_status", ["final"]],
  ["a time-out", [attempt(null, "timeout")], "timeout", ["final"]],
  ["three refusals", [attempt(429), attempt(503), attempt(503)], "service_unavailable", ["retry", "retry", "attempts_used_up"]],
  ["a refusal, then another failure", [attempt(503), attempt(200)], "not_json", ["retry", "final"]],
  ["a refusal, then the deadline", [attempt(503)], "deadline_exceeded", ["deadline_exceeded"]],
  ["no call at all", [], "deadline_exceeded", []],
])("says what followed each attempt: %s", (_what, attempts, error_detail, next) => {
  expect(attemptHistory({ attempts, error_detail }).map((entry) => entry.next)).toEqual(next);
});

it("is stored and read back whole, in at most 140 bytes an attempt", () => {
  const outcome = {
    attempts: [attempt(503, "service_unavailable"), attempt(null, "headers_too_large")],
    error_detail: "headers_too_large",
  };
  expect(readStoredAttempts(storedAttempts(outcome))).toEqual(attemptHistory(outcome));
  expect(storedAttempts(outcome).length).toBeLessThanOrEqual(280);
});

it("is never null in the table, and nothing where the table has none", () => {
  expect(storedAttempts({ attempts: [], error_detail: null })).toBe("[]");
  expect(readStoredAttempts("[]")).toEqual([]);
  expect(readStoredAttempts(null)).toEqual([]);
});
