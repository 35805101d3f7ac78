import type { Kafka } from "kafkajs";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logging/logger.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { BrokerClock } from "../../retry/broker-clock.ts";
import type { BatchHandler, Codec, TopicPartition } from "../contracts.ts";
import type { TopicDefinition } from "../topics.ts";
import { BatchWork } from "./batch-work.ts";
import type { DeadLetters } from "./dead-letters.ts";
import type { GroupTiming } from "./group-work.ts";

/** A handler of any record type fits: `never` stands for the type that the topic's schema fixes. */
export interface BatchTopic {
  readonly topic: TopicDefinition;
  readonly handler: BatchHandler<never>;
}

export interface BatchConsumerOptions {
  readonly groupId: string;
  /** Of a topic with a delay the handler gets a record when it is due, never before. */
  readonly topics: readonly BatchTopic[];
  readonly codec: Codec;
  readonly deadLetters: DeadLetters;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly timing: GroupTiming;
  /** Called at every assignment after all batches of the old one have settled, before new ones start. */
  readonly onAssigned?: (assigned: readonly TopicPartition[]) => void;
  /** The consumer ended and cannot start again: the process has to. */
  readonly fail: (cause: unknown) => void;
  /** Shared with a producer that teaches it (retry/broker-clock.ts); only topics with a delay use it. */
  readonly brokerClock?: BrokerClock;
  /** While much comes, larger batches are waited for, up to 100 ms; an idle consumer never waits. Default: never. */
  readonly gathers?: boolean;
  /** So many records in a row that cannot be processed stop the dead-lettering; default 20. */
  readonly brakeAfter?: number;
}

export interface BatchConsumer {
  readonly assigned: readonly TopicPartition[];
  /** undefined: well; else what is wrong, for the ready check. */
  health(): string | undefined;
  /** Handlers are told to leave; resolves when they have, and the group is left. */
  stop(): Promise<void>;
}

/**
 * Consumes with handlers that return when their work is done (splitter, aggregator): what a handler has returned from is committed.
 * A record that cannot be processed ends in the dead letters, and nothing else is ever skipped. Rejects when no broker can be reached.
 */
export async function startBatchConsumer(kafka: Kafka, options: BatchConsumerOptions): Promise<BatchConsumer> {
  const work = new BatchWork(kafka, options);
  await work.start();
  return work;
}
