import type { AttemptEntry } from "../../../services/common/messages/attempt-history.ts";
import type { RefreshWatchdog } from "../../../services/common/messages/records.ts";

/** What is stored of a refresh. Times in micros. */
export interface StoredRefresh {
  readonly refreshId: string;
  readonly projectId: number;
  readonly collection: string;
  readonly requestedAt: number;
  /** In order: the position is the ordinal. */
  readonly tokenIds: readonly string[];
  readonly progress: StoredProgress | undefined;
  readonly failures: ReadonlyMap<number, TokenFailure>;
}

export interface StoredProgress {
  readonly done: Uint8Array;
  readonly failed: Uint8Array;
  readonly succeeded: number;
  readonly unchanged: number;
  readonly failedCount: number;
  /** 0 while it is not completed. */
  readonly completedAt: number;
}

export interface TokenFailure {
  readonly url: string;
  readonly statusCode: number | null;
  readonly errorCode: string;
  readonly errorDetail: string | null;
  readonly createdAt: number;
  readonly attempts: readonly AttemptEntry[];
}

/** How one token of a refresh stands. */
export interface TokenStanding {
  readonly ordinal: number;
  readonly tokenId: string;
  readonly outcome: "pending" | "succeeded" | "failed";
  readonly failure: TokenFailure | undefined;
}

export function standings({ tokenIds, progress, failures }: StoredRefresh): TokenStanding[] {
  const has = (bitmap: Uint8Array | undefined, ordinal: number) => ((bitmap?.[ordinal >> 3] ?? 0) >> (ordinal & 7)) & 1;
  return tokenIds.map((tokenId, ordinal) => {
    const ended = has(progress?.failed, ordinal) ? "failed" : "succeeded";
    const outcome = has(progress?.done, ordinal) ? ended : "pending";
    return { ordinal, tokenId, outcome, failure: failures.get(ordinal) };
  });
}

/** Records that a group has not finished in the one partition that a refresh goes through: of it, and of its neighbours. */
export interface StageLag {
  readonly stage: "splitter" | "fetcher" | "delay tier" | "aggregator";
  /** Without the environment's prefix. */
  readonly topic: string;
  readonly partition: number;
  readonly delayMs: number | null;
  readonly lag: number;
}

/** The newest check on a refresh that waits in the watchdog's topic. */
export interface PendingCheck {
  readonly watchdog: RefreshWatchdog;
  readonly dueMs: number;
}

/** Ids of open dead letters whose key is the refresh, its project or its collection. */
export type OpenLetters = readonly { readonly id: string; readonly topic: string; readonly ofRefresh: boolean }[];
