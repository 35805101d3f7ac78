import { createHash } from "node:crypto";
import type { TokenOutcome } from "../../../services/common/messages/records.ts";
import { Account, type FaultProject } from "../../faults/account.ts";
import type { Evidence, RefreshEvidence, TokenEvidence } from "../../faults/verify/evidence.ts";
import type { CallRecord } from "../../support/metadata-api/call-log.ts";
import type { ReadRecord } from "../../support/topic-reader.ts";

const generationSize = 2 ** 40;
export const baseMs = 1_790_000_000_000;
export const refreshId = "01a0c5e0-0000-7000-8000-000000000001";
const collection = "0xc0";

export const textOf = (tokenId: string): string => `{"name":"${tokenId}"}`;
const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

export const project = {
  projectId: 7,
  collection,
  registered: undefined,
  refreshesPerHour: 2,
  api: { textsOf: (tokenId: string) => [textOf(tokenId)] },
} as unknown as FaultProject;

export function record<T>(topic: string, offset: number, value: T, atMs: number): ReadRecord<T> {
  return { topic, partition: 0, offset, key: "", headers: {}, timestampMs: baseMs + atMs, bytes: Buffer.from("x"), value };
}

export function call(tokenId: string, sequence: number, atMs: number, end: CallRecord["end"]): CallRecord {
  const common = { concurrent: 1, refused: false, bodyBytes: 0, durationMs: 20 };
  return { sequence, tokenId, callNumber: sequence, atMs: baseMs + atMs, end, ...common };
}

export function outcome(ordinal: number, tokenId: string, offset: number, atMs: number): ReadRecord<TokenOutcome> {
  const failed = tokenId === "2";
  const text = textOf(tokenId);
  const result = failed
    ? {
        metadata: null,
        content_hash: null,
        error_code: "invalid_response_status_code",
        error_detail: "unexpected_status",
        status_code: 404,
      }
    : { metadata: text, content_hash: hashOf(text), error_code: null, error_detail: null, status_code: 200 };
  const value = { refresh_id: refreshId, ordinal, token_id: tokenId, collection_address: collection, ...result };
  return record("outcome", offset, value as unknown as TokenOutcome, atMs);
}

function succeeded(tokenId: string, offset: number, calls: readonly CallRecord[]): TokenEvidence {
  const [text, version] = [textOf(tokenId), generationSize + offset];
  const state = { token_id: tokenId, version, metadata: text, content_hash: hashOf(text), refresh_id: refreshId };
  return {
    project,
    tokenId,
    isRegistered: true,
    refreshCount: 1,
    row: { metadata: text, content_hash: hashOf(text), version: BigInt(version) },
    calls,
    counted: [outcome(Number(tokenId) - 1, tokenId, offset, 500)],
    states: [{ ...record("state", offset, state, 510), key: `${collection}:${tokenId}` }] as unknown as TokenEvidence["states"],
  };
}

/** A refresh of three tokens as it should end: one is well, one is not there, and one is well at its second call. */
export function soundEvidence(): Evidence {
  const tokenIds = ["1", "2", "3"];
  const outcomes = tokenIds.map((tokenId, ordinal) => outcome(ordinal, tokenId, ordinal, 500));
  const completed = { refresh_id: refreshId, requested_at: 1, completed_at: 2, succeeded: 2, failed: 1, total: 3 };
  const summary = { succeeded: 2, failed: 1, pending: 0 };
  const refresh = {
    project,
    tokenIds,
    idempotencyKey: "a",
    answer: { kind: "accepted", refreshId },
    refreshId,
    view: { refresh_id: refreshId, status: "completed", summary },
    errors: [{ token_id: "2" }],
    progressRow: {
      done: Buffer.from([7]),
      failed: Buffer.from([2]),
      succeeded_count: 2,
      failed_count: 1,
      failed_by_code: { x: 1 },
    },
    errorRows: [{ ordinal: 1 }],
    outcomes,
    completions: [{ ...record("completed", 0, completed, 520), headers: { ce_id: "c" } }],
    requested: [record("requested", 0, { refresh_id: refreshId }, 0)],
    underWay: [
      ...tokenIds.map((_, ordinal) => record("token.requested", ordinal, { refresh_id: refreshId, ordinal }, 10)),
      record("token.retry-2s", 0, { refresh_id: refreshId, ordinal: 2 }, 60),
    ],
  } as unknown as RefreshEvidence;
  const account = new Account();
  account.requests.push(refresh);
  return {
    account,
    refreshes: [refresh],
    tokens: [
      succeeded("1", 0, [call("1", 1, 100, "200")]),
      { ...succeeded("2", 1, [call("2", 2, 100, "404")]), row: undefined, states: [], counted: [outcome(1, "2", 1, 500)] },
      succeeded("3", 2, [call("3", 3, 30, "503"), call("3", 4, 400, "200")]),
    ],
    unclaimed: [],
    unfinished: [],
    listed: new Map([[project, [refreshId]]]),
    deadLetters: [],
    commits: new Map([
      ["token.requested/0", [{ offset: 3, seenAtMs: baseMs + 600 }]],
      ["token.retry-2s/0", [{ offset: 1, seenAtMs: baseMs + 600 }]],
      ["requested/0", [{ offset: 1, seenAtMs: baseMs + 50 }]],
      ["outcome/0", [{ offset: 3, seenAtMs: baseMs + 600 }]],
    ]),
    progressReads: { count: 9, wrong: [] },
    log: { lineCount: 100, leaks: [] },
    unaskedEnds: [],
    slowestProbeMs: 90,
    generation: 1,
    shortestDelayMs: 300,
  };
}
