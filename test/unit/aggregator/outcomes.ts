import type { DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { ErrorCode, TokenOutcome } from "../../../services/common/messages/records.ts";

/** Records of token.outcome for tests: what is not said is ordinary. */

export const collection = "0x00000000000000000000000000000000000c0113";
export const topic = "internal.metadata.token.outcome.v1";
/** 2026-01-01T00:00:00Z in micros. */
export const startOfTime = 1_767_225_600_000_000;

export function refreshId(number: number): string {
  return `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;
}

/** 64 hexadecimal digits that stand for the SHA-256 of a text: in a test the text itself says which content it is. */
export function hashOf(content: string): string {
  return Buffer.from(content).toString("hex").padEnd(64, "0").slice(0, 64);
}

export function success(content: string): Partial<TokenOutcome> {
  return { status_code: 200, metadata: content, content_hash: hashOf(content), error_code: null, error_detail: null };
}

export function failure(code: ErrorCode = "invalid_response_status_code"): Partial<TokenOutcome> {
  const body = code === "token_not_found" ? { status_code: null, response_body: null } : { response_body: "nope" };
  return { status_code: 500, metadata: null, content_hash: null, error_code: code, error_detail: "status", ...body };
}

export function outcomeRecord(offset: number, value: Partial<TokenOutcome> = {}): DecodedRecord<TokenOutcome> {
  const record: TokenOutcome = {
    refresh_id: refreshId(1),
    ordinal: 0,
    total: 1,
    project_id: 7,
    collection_address: collection,
    token_id: "1",
    requested_at: startOfTime,
    created_at: startOfTime + offset * 1_000,
    emission: 1,
    url: "https://api.example.com/metadata/1",
    status_code: 200,
    metadata: null,
    content_hash: null,
    error_code: null,
    error_detail: null,
    response_body: null,
    attempts: [],
    ...(value.error_code === undefined && value.metadata === undefined ? success("A") : {}),
    ...value,
  };
  const bytes = 300 + (record.metadata?.length ?? 0) + (record.response_body?.length ?? 0);
  return { topic, partition: 0, offset, key: record.collection_address, timestampMs: 0, bytes, value: record };
}
