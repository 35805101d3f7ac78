import { z } from "zod";
import { isoFromMicros } from "../../common/clock.ts";
import { knownAddressSchema } from "../../common/http/fields.ts";
import { type AttemptEntry, nextSteps } from "../../common/messages/attempt-history.ts";
import { errorCodes } from "../../common/messages/records.ts";

/** The immutable facts of a refresh. Times in micros. */
export interface RefreshFacts {
  readonly refreshId: string;
  readonly projectId: number;
  readonly collectionAddress: string;
  readonly requestedAt: number;
  readonly total: number;
}

/** How far a refresh is; undefined where no token of it has ended yet. */
export interface RefreshProgress {
  readonly succeeded: number;
  readonly failed: number;
  /** Micros; undefined until every token has ended. */
  readonly completedAt: number | undefined;
}

export interface TokenError {
  readonly ordinal: number;
  readonly tokenId: string;
  readonly collectionAddress: string;
  readonly url: string;
  readonly statusCode: number | null;
  readonly responseBody: string | null;
  readonly errorCode: string;
  readonly errorDetail: string | null;
  /** Micros. */
  readonly createdAt: number;
  readonly attempts: readonly AttemptEntry[];
}

/** The place of an error in its list, in a cursor: when it was recorded, and the ordinal, which decides between those of one instant. */
export const errorPlaceSchema = z.tuple([z.int().min(0), z.int().min(0)]);

const timestampSchema = z
  .string()
  .regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
  .describe("ISO 8601 in UTC, with microseconds")
  .meta({ format: "date-time", examples: ["2026-01-31T08:15:30.123456Z"] });

/** Specification section 2.2. */
export const refreshItemSchema = z.strictObject({
  refresh_id: z.uuid(),
  status: z.enum(["queued", "in_progress", "completed"]).describe("queued: no token has ended; completed: every token has"),
  collection_address: knownAddressSchema,
  started_at: timestampSchema,
  completed_at: timestampSchema.nullable().describe("null until the refresh is completed"),
});

/** Specification section 2.1. */
export const refreshSchema = refreshItemSchema.extend({
  summary: z
    .strictObject({
      succeeded: z.int().min(0).describe("tokens whose metadata has been updated"),
      failed: z.int().min(0).describe("tokens whose metadata could not be updated"),
      pending: z.int().min(0).describe("tokens not yet processed"),
    })
    .describe("The three add up to the number of tokens requested"),
});

const attemptSchema = z.strictObject({
  at: timestampSchema.describe("When the call was started"),
  status: z.int().nullable().describe("null when no response was received"),
  duration_ms: z.int().describe("From the start of the call to its result"),
  bytes: z.int().min(0).describe("Bytes of the body that were received"),
  cause: z.string().nullable().describe("As error_detail; null for an answer that was good"),
  next: z
    .enum(nextSteps)
    .describe(
      "retry: refused, and tried again after a wait; final: not a cause that is tried again; " +
        "attempts_used_up: refused, and the last attempt of a token; deadline_exceeded: refused, and the refresh's time ran out",
    ),
});

/** Specification section 2.3, with the finer cause beside the error code, and the calls that were made. */
export const errorItemSchema = z.strictObject({
  token_id: z.string(),
  collection_address: knownAddressSchema,
  client_token_metadata_url: z.string().describe("URL of the Metadata API request, made or not"),
  client_response_status_code: z.int().nullable().describe("null when no response was received"),
  client_response_body: z.string().nullable().describe("The first 4 KiB; null when there was none"),
  error_code: z.enum(errorCodes),
  error_detail: z.string().nullable().describe("The finer cause: timeout, dns, connect, redirect, not_json, …"),
  created_at: timestampSchema,
  attempts: z.array(attemptSchema).describe("The calls that were made, oldest first, at most three; empty when none was"),
});

export const receiptSchema = z.strictObject({ refresh_id: z.uuid() });

export type RefreshItem = z.output<typeof refreshItemSchema>;
export type Refresh = z.output<typeof refreshSchema>;
export type ErrorItem = z.output<typeof errorItemSchema>;

/** Status, times and counts come from one row, so they never disagree: invariants I2 and I3. */
export function refreshItem(
  facts: Omit<RefreshFacts, "projectId" | "total">,
  progress: RefreshProgress | undefined,
): RefreshItem {
  const completedAt = progress?.completedAt;
  return {
    refresh_id: facts.refreshId,
    status: statusOf(progress),
    collection_address: facts.collectionAddress,
    started_at: isoFromMicros(facts.requestedAt),
    completed_at: completedAt === undefined ? null : isoFromMicros(completedAt),
  };
}

export function refreshView(facts: RefreshFacts, progress: RefreshProgress | undefined): Refresh {
  const { succeeded, failed } = progress ?? { succeeded: 0, failed: 0 };
  return { ...refreshItem(facts, progress), summary: { succeeded, failed, pending: facts.total - succeeded - failed } };
}

export function errorView(error: TokenError): Omit<ErrorItem, "error_code"> & { error_code: string } {
  return {
    token_id: error.tokenId,
    collection_address: error.collectionAddress,
    client_token_metadata_url: error.url,
    client_response_status_code: error.statusCode,
    client_response_body: error.responseBody,
    error_code: error.errorCode,
    error_detail: error.errorDetail,
    created_at: isoFromMicros(error.createdAt),
    attempts: error.attempts.map((attempt) => ({ ...attempt, at: isoFromMicros(attempt.at) })),
  };
}

function statusOf(progress: RefreshProgress | undefined): RefreshItem["status"] {
  if (progress === undefined) return "queued";
  if (progress.completedAt !== undefined) return "completed";
  return progress.succeeded + progress.failed === 0 ? "queued" : "in_progress";
}
