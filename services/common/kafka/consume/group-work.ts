import type { EachBatchPayload, KafkaMessage } from "kafkajs";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logging/logger.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { TopicPartition } from "../contracts.ts";
import type { TopicDefinition } from "../topics.ts";
import type { Session } from "./session.ts";

/** Times of a consumer group. The session is at least three times the request time-out (README, Exactness, ownership). */
export interface GroupTiming {
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly requestTimeoutMs: number;
}

export interface GroupConsumerOptions {
  readonly groupId: string;
  readonly topics: readonly TopicDefinition[];
  readonly timing: GroupTiming;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The consumer ended and cannot start again: the process has to. */
  readonly fail: (cause: unknown) => void;
  /** While much comes, wait for more: gathering.ts. */
  readonly gathers?: boolean;
}

/** What is done with the partitions. A throw is a bug: it ends the process. */
export interface GroupWork {
  /** Records from the partition's position on. What was not advanced over is read again. */
  onBatch(batch: FetchedBatch): Promise<void>;
  /** All batches of the old assignment have settled, none of the new one has started. */
  onAssigned(assigned: readonly TopicPartition[], lost: readonly TopicPartition[]): void;
  /** The assignment is about to end: the last moment to commit. */
  onRebalancing?(): void;
  /**
   * How far the work itself has read a partition, so that it need not start at what is committed; undefined when it has not, or
   * when what is committed shows that another member had the partition meanwhile.
   */
  positionOf?(partition: TopicPartition, committed: number | undefined): number | undefined;
  /** Reading starts here. `replaced`: the log is another one than before, its old offsets mean nothing now. After `positionOf`. */
  onPlaced?(partition: TopicPartition, start: PlacedStart): void;
  /** The log holds no record below this offset that was not in a batch. */
  onPassed?(partition: TopicPartition, offset: number): void;
  /** How far the partition has come, when that is not the position. */
  markOf?(partition: TopicPartition): number | undefined;
}

export interface PlacedStart {
  readonly offset: number;
  readonly committed: number | undefined;
  readonly replaced: boolean;
}

/** What one fetch brought of one partition. */
export interface FetchedBatch extends TopicPartition {
  readonly messages: readonly KafkaMessage[];
  readonly highWatermark: number;
  /** Aborted when the assignment ends or the consumer stops. */
  readonly signal: AbortSignal;
  /** The offset that follows the message at this index, past what the log holds between it and the next. */
  offsetAfter(index: number): number;
  /** The messages up to this index, included, are not fetched again. Commits nothing. */
  advance(index: number): void;
}

export function fetchedBatch(session: Session, { batch, resolveOffset }: EachBatchPayload): FetchedBatch {
  const { topic, partition, messages } = batch;
  const isLast = (index: number): boolean => index === messages.length - 1;
  const offsetOf = (index: number): string => (isLast(index) ? batch.lastOffset() : (messages[index]?.offset ?? ""));
  return {
    topic,
    partition,
    messages,
    highWatermark: Number(batch.highWatermark),
    signal: session.signal,
    offsetAfter: (index) => Number(offsetOf(index)) + 1,
    advance: (index) => {
      // Under the next session kafkajs has other positions, or none for this topic.
      if (session.ended) return;
      session.place({ topic, partition }, Number(offsetOf(index)) + 1, Number(batch.highWatermark));
      resolveOffset(messages[index]?.offset ?? "");
    },
  };
}
