import type { AttemptEntry } from "../../../services/common/messages/attempt-history.ts";
import { microsText, printable, table } from "../text.ts";
import { type StageLag, type StoredRefresh, standings, type TokenStanding } from "./facts.ts";

export interface Inspection {
  readonly refreshId: string;
  readonly stored: StoredRefresh | undefined;
  readonly lags: readonly StageLag[];
  readonly waits: readonly string[];
}

/** Everything about a refresh, for people. */
export function inspectionText({ refreshId, stored, lags, waits }: Inspection): string {
  const waiting = `waits for\n${waits.map((sentence) => `  ${sentence}\n`).join("")}`;
  const request = stored === undefined ? `refresh ${refreshId}: no rows\n` : requestText(stored);
  const parts = [request, waiting, lagText(lags)];
  if (stored !== undefined) parts.push(tokensText(standings(stored)));
  return parts.join("\n");
}

function requestText({ refreshId, projectId, collection, requestedAt, tokenIds, progress }: StoredRefresh): string {
  const { succeeded = 0, unchanged = 0, failedCount = 0, completedAt = 0 } = progress ?? {};
  const pending = tokenIds.length - succeeded - failedCount;
  const lines = [
    ["refresh", refreshId],
    ["project", String(projectId)],
    ["collection", collection],
    ["requested", microsText(requestedAt)],
    ["completed", completedAt === 0 ? "not yet" : microsText(completedAt)],
    ["tokens", `${tokenIds.length}: ${succeeded} succeeded (${unchanged} unchanged), ${failedCount} failed, ${pending} pending`],
  ] as const;
  return lines.map(([name, text]) => `${name.padEnd(11)}${text}\n`).join("");
}

function lagText(lags: readonly StageLag[]): string {
  const rows = lags.map(({ stage, topic, partition, lag }) => [stage, topic, String(partition), String(lag)]);
  return `${table(["stage", "topic", "partition", "not done"], rows)}\n`;
}

function tokensText(tokens: readonly TokenStanding[]): string {
  const rows = tokens.flatMap((token) => [tokenRow(token), ...(token.failure?.attempts ?? []).map(attemptRow)]);
  return `${table(["ordinal", "token", "outcome", "why"], rows)}\n`;
}

function tokenRow({ ordinal, tokenId, outcome, failure }: TokenStanding): string[] {
  return [String(ordinal), tokenId, outcome, failure === undefined ? "" : whyText(failure)];
}

function whyText({ errorCode, errorDetail, statusCode, url }: NonNullable<TokenStanding["failure"]>): string {
  const status = statusCode === null ? "" : `, status ${statusCode}`;
  return `${errorCode} (${errorDetail ?? "no detail"})${status}, ${url}`;
}

function attemptRow({ at, status, duration_ms, bytes, cause, next }: AttemptEntry): string[] {
  const answer = status === null ? "no status" : `status ${status}`;
  return ["", "", "attempt", `${microsText(at)}: ${answer}, ${duration_ms} ms, ${bytes} bytes, ${cause ?? "good"}: ${next}`];
}

/** The same for programs. */
export function inspectionDocument({ refreshId, stored, lags, waits }: Inspection): object {
  const request = stored && {
    project_id: stored.projectId,
    collection_address: stored.collection,
    requested_at: microsText(stored.requestedAt),
    completed_at: stored.progress?.completedAt ? microsText(stored.progress.completedAt) : null,
  };
  const tokens = stored === undefined ? [] : standings(stored).map(tokenDocument);
  return { refresh_id: refreshId, ...request, waits_for: waits, lags, tokens };
}

function tokenDocument({ ordinal, tokenId, outcome, failure }: TokenStanding): object {
  const why = failure && {
    error_code: failure.errorCode,
    error_detail: failure.errorDetail,
    status: failure.statusCode,
    url: printable(failure.url),
    attempts: failure.attempts.map((attempt) => ({ ...attempt, at: microsText(attempt.at) })),
  };
  return { ordinal, token_id: tokenId, outcome, ...why };
}
