import type { ErrorCode, RefreshCompleted } from "../../common/messages/records.ts";
import { errorCodes } from "../../common/messages/records.ts";
import { copyOf, countBits, emptyBitmap, hasBit, setBit } from "./bitmap.ts";
import type { Outcome } from "./outcome.ts";

/** How far a refresh is: a value, and a function of the refresh's outcomes up to some version alone. */
export interface Progress {
  readonly total: number;
  /** Of the newest outcome that it contains, and with it of every one before: the timestamp of its row. 0: none. */
  readonly version: number;
  /** Ordinals that have their outcome. */
  readonly done: Uint8Array;
  /** Of them, those that failed. */
  readonly failed: Uint8Array;
  readonly succeededCount: number;
  /** Of the succeeded, those whose content was the stored one. */
  readonly unchangedCount: number;
  readonly failedCount: number;
  readonly failedByCode: FailedByCode;
  /** Micros; 0 while it is not completed. */
  readonly completedAt: number;
  /** Version of the outcome that completed it; 0 while it is not completed. */
  readonly completedVersion: number;
}
/** Codes with a count above 0 only. */
export type FailedByCode = Readonly<Partial<Record<ErrorCode, number>>>;

export function noProgress(total: number): Progress {
  return {
    total,
    version: 0,
    done: emptyBitmap(total),
    failed: emptyBitmap(total),
    succeededCount: 0,
    unchangedCount: 0,
    failedCount: 0,
    failedByCode: {},
    completedAt: 0,
    completedVersion: 0,
  };
}

export function isDone(progress: Progress, ordinal: number): boolean {
  return hasBit(progress.done, ordinal);
}

export function isCompleted(progress: Progress): boolean {
  return progress.completedVersion !== 0;
}

/** Progress that one outcome after the other is counted into. A value that was given away never changes: bitmaps are copied first. */
export class ProgressDraft {
  #value: Progress;
  #isGivenAway = true;

  constructor(value: Progress) {
    this.#value = value;
  }

  get value(): Progress {
    this.#isGivenAway = true;
    return this.#value;
  }

  get total(): number {
    return this.#value.total;
  }

  get version(): number {
    return this.#value.version;
  }

  isDone(ordinal: number): boolean {
    return isDone(this.#value, ordinal);
  }

  isCompleted(): boolean {
    return isCompleted(this.#value);
  }

  /** Counts the first outcome of an ordinal; the one that leaves nothing pending completes the refresh. */
  count(outcome: Outcome, unchanged: boolean): void {
    const { ordinal, requested_at, created_at } = outcome.record;
    const { version, result } = outcome;
    const { done, failed } = this.#ownBitmaps();
    setBit(done, ordinal);
    if (!result.ok) setBit(failed, ordinal);
    const counts = result.ok ? success(this.#value, unchanged) : failure(this.#value, result.errorCode);
    this.#value = { ...this.#value, ...counts, version, done, failed };
    if (countBits(done) < this.#value.total) return;
    // The clocks of ingress and fetcher are two: never completed before it was requested (invariant I15).
    this.#value = { ...this.#value, completedAt: Math.max(requested_at, created_at), completedVersion: version };
  }

  #ownBitmaps(): Pick<Progress, "done" | "failed"> {
    const { done, failed } = this.#value;
    if (!this.#isGivenAway) return { done, failed };
    this.#isGivenAway = false;
    return { done: copyOf(done), failed: copyOf(failed) };
  }
}

function success({ succeededCount, unchangedCount }: Progress, unchanged: boolean): Partial<Progress> {
  return { succeededCount: succeededCount + 1, unchangedCount: unchangedCount + (unchanged ? 1 : 0) };
}

function failure({ failedCount, failedByCode }: Progress, code: ErrorCode): Partial<Progress> {
  return { failedCount: failedCount + 1, failedByCode: { ...failedByCode, [code]: (failedByCode[code] ?? 0) + 1 } };
}

/**
 * The public fact that a refresh has ended. Made from its progress and from what every outcome record of it says alike, so that
 * it has the same bytes whenever it is made: Avro writes a map in the order of its keys, and a stored map comes back in another.
 */
export function completionOf({ record }: Outcome, progress: Progress): RefreshCompleted {
  const codes = errorCodes.filter((code) => (progress.failedByCode[code] ?? 0) > 0);
  return {
    refresh_id: record.refresh_id,
    project_id: record.project_id,
    collection_address: record.collection_address,
    requested_at: record.requested_at,
    completed_at: progress.completedAt,
    total: progress.total,
    succeeded: progress.succeededCount,
    unchanged: progress.unchangedCount,
    failed: progress.failedCount,
    failed_by_code: Object.fromEntries(codes.map((code) => [code, progress.failedByCode[code] ?? 0])),
  };
}
