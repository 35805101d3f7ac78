import type { BatchContext, TopicPartition } from "../../common/kafka/contracts.ts";
import type { RefreshCompleted, TokenState } from "../../common/messages/records.ts";
import type { Plan, RefreshWrite, Segment, TokenWrite } from "./plan.ts";
import type { Progress } from "./progress.ts";
import type { TokenHead } from "./token.ts";

/** `collection:token` cut in two. */
export interface TokenAddress {
  readonly collection_address: string;
  readonly token_id: string;
}

/** Writes resolve when they are durable, tried again without end; they reject with AbandonedError when `signal` aborts. */
export interface TokenStore {
  /** By `collection:token`; a token without content is absent. */
  load(tokens: readonly TokenAddress[]): Promise<ReadonlyMap<string, TokenHead>>;
  write(writes: readonly TokenWrite[], signal: AbortSignal): Promise<void>;
}

export interface RefreshStore {
  /** By refresh id; a refresh without an outcome is absent. */
  load(refreshIds: readonly string[]): Promise<ReadonlyMap<string, Progress>>;
  write(writes: readonly RefreshWrite[], signal: AbortSignal): Promise<void>;
}

/** What marketplaces see. Resolves when every record is acknowledged. */
export interface Publisher {
  /** Under the lease: nothing is sent when `mayAct` says no, and then it rejects with AbandonedError. */
  publishStates(states: readonly TokenState[], lease: Pick<BatchContext, "signal" | "mayAct">): Promise<void>;
  publishCompletions(completions: readonly RefreshCompleted[], lease: Pick<BatchContext, "signal" | "mayAct">): Promise<void>;
}

/** What a map and an LRU cache have in common. */
export interface Cache<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): unknown;
  delete(key: string): unknown;
  clear(): void;
}

export interface Telemetry {
  /** The effects of a segment are durable. */
  segmentApplied(segment: Segment): void;
  /** Returns what to call when every effect of the batch is durable. */
  batchStarted(): (plan: Plan) => void;
  /** The partition stands still, and somebody has to look: once, not at every try. */
  fenced(partition: TopicPartition, reason: string): void;
}
