import type { RefreshRequested, RefreshWatchdog, TokenOutcome, TokenRefresh } from "../../common/messages/records.ts";

/** The rows of a refresh, the same bytes as ingress writes: it may have crashed between its publish and its rows. */
export type WriteRefresh = (refresh: RefreshRequested) => Promise<void>;

/** The bitmap of ordinals that have an outcome; undefined while there is no progress row. */
export type ReadDone = (refreshId: string) => Promise<Uint8Array | undefined>;

/** Which of the tokens are registered in the collection. */
export type ReadRegistered = (collectionAddress: string, tokenIds: readonly string[]) => Promise<ReadonlySet<string>>;

/**
 * Whether a token of the project, or an outcome of the collection, may still be on its way. Asked of the fetch topics first and
 * of the outcome topic second: a token that leaves the first in between is then seen in the second.
 */
export type IsUnderWay = (projectId: number, collectionAddress: string) => Promise<boolean>;

/** What a step hands on, all of one refresh. */
export interface Handover {
  readonly requested: readonly TokenRefresh[];
  readonly outcomes: readonly TokenOutcome[];
  readonly check: RefreshWatchdog;
}

/** Resolves when every record is acknowledged. Rejects with AbandonedError when `signal` aborts. */
export type HandOver = (handover: Handover, signal: AbortSignal) => Promise<void>;
