import type { Kafka } from "kafkajs";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logging/logger.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { BrokerClock } from "../../retry/broker-clock.ts";
import type { Codec, DecodedRecord, TopicPartition } from "../contracts.ts";
import type { TopicDefinition } from "../topics.ts";
import type { DeadLetters } from "./dead-letters.ts";
import type { GroupTiming } from "./group-work.ts";
import { WindowWork } from "./window-work.ts";

export interface WindowConsumerOptions<T> {
  readonly groupId: string;
  readonly main: TopicDefinition;
  /** Delay tiers: a record of theirs is handed out when it is due, never before. */
  readonly tiers: readonly TopicDefinition[];
  readonly codec: Codec;
  readonly deadLetters: DeadLetters;
  /** Learns from what is fetched; let the producer's acknowledgements teach it too (retry/broker-clock.ts). */
  readonly brokerClock: BrokerClock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly timing: GroupTiming;
  /** Takes over records of one partition, in order. Every one is finished by `finish`, or its partition is lost. Must not throw. */
  readonly onRecords: (records: readonly DecodedRecord<T>[], batch: { readonly highWatermark: number }) => void;
  /** These partitions went to another member: what is queued of them must be dropped; `finish` on them does nothing. */
  readonly onLost: (partitions: readonly TopicPartition[]) => void;
  /** The consumer ended and cannot start again: the process has to. */
  readonly fail: (cause: unknown) => void;
  /** For all handed out and unfinished records of the process; default 20,000 records and 64 MiB. */
  readonly budget?: { readonly records: number; readonly bytes: number };
  /** Default 1000. */
  readonly commitIntervalMs?: number;
  /** So many records in a row that cannot be decoded stop the dead-lettering; default 20. */
  readonly brakeAfter?: number;
}

export interface WindowConsumer {
  readonly assigned: readonly TopicPartition[];
  /** Its outcome, or its next tier's record, is acknowledged: the offset may be committed. Again, or on a lost partition: nothing. */
  finish(record: TopicPartition & { readonly offset: number }): void;
  /** Fetches nothing more of the partition until `resume`; independent of the consumer's own pauses. */
  pause(partition: TopicPartition): void;
  resume(partition: TopicPartition): void;
  /** The budget is spent: nothing is fetched of the main topic, and nothing of the tiers handed out, until a good part is finished. */
  readonly full: boolean;
  /** In the current assignment. */
  owned(partition: TopicPartition): boolean;
  /** The lease: owned, and the last good heartbeat is young enough for an effect to start. */
  mayAct(partition: TopicPartition): boolean;
  /** First step of a graceful stop: hands out nothing more, tiers included. Then the caller drains, then `stop`. */
  pauseAll(): void;
  /** Commits the low-water marks, then leaves the group. */
  stop(): Promise<void>;
  /** undefined: well; else what is wrong, for the ready check. */
  health(): string | undefined;
}

/**
 * Consumes by handing records off (fetcher): they finish in any order, and what is committed is the offset below which all are
 * finished. Rejects when no broker can be reached.
 */
export async function startWindowConsumer<T>(kafka: Kafka, options: WindowConsumerOptions<T>): Promise<WindowConsumer> {
  const work = new WindowWork(kafka, options);
  await work.start();
  return work;
}
