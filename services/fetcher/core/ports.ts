import type { DecodedRecord, TopicPartition } from "../../common/kafka/contracts.ts";
import type { TopicDefinition } from "../../common/kafka/topics.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import type { Conclusion } from "./attempt-rules.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Move, OverflowPorts } from "./overflow.ts";
import type { CallResult } from "./results.ts";
import type { Position, Work } from "./work.ts";

/** How a delivery ended; `abandoned`: it was wanted no more before it could be made. */
export type Delivery = "acknowledged" | "too_large" | "abandoned";

/** What the pipeline needs of the world. */
export interface PipelinePorts extends OverflowPorts {
  /** Never rejects. `mayStart` is asked at the last moment; `abandoned`: it said no, and no call was made. */
  call(refresh: TokenRefresh, endpoint: Endpoint & { ok: true }, mayStart: () => boolean): Promise<CallResult | "abandoned">;
  /** `wanted` is asked before each try. */
  deliver(conclusion: Conclusion, wanted: () => boolean): Promise<Delivery>;
  /** Puts the records into the tier as they are. `abandoned` says nothing about each of them: some may be in it. */
  move(refreshes: readonly TokenRefresh[], tier: TopicDefinition, wanted: () => boolean): Promise<Delivery>;
  /** The record can never be processed; acknowledged when it resolves. */
  bury(record: DecodedRecord<TokenRefresh>, reason: string): Promise<void>;
  finish(position: Position): void;
  /** The lease: may a call start, or a record be moved? */
  mayAct(partition: TopicPartition): boolean;
  /** Whether the memory for bodies has room for another call. */
  hasRoom(): boolean;
  endpointOf(metadataApiUrl: string): Endpoint;
  /** Asks for `proceed` after this many milliseconds or earlier. */
  wakeAfter(delayMs: number): void;
  report: PipelineReport;
  /** A bug, or a record that no topic can take: nothing here can go on. */
  fail(cause: unknown): void;
}

export interface PipelineReport {
  started(work: Work, waitedMs: number): void;
  /** After a call, and for a URL that is not called. */
  attempted(work: Work, result: CallResult, conclusion: Conclusion): void;
  duplicate(): void;
  /** Acknowledged. */
  moved(move: Move): void;
}
