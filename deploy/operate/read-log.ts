import { randomUUID } from "node:crypto";
import type { Consumer, EachBatchPayload, Kafka } from "kafkajs";
import { rawRecord } from "../../services/common/kafka/consume/raw-record.ts";
import type { RawRecord } from "../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";

/** A stretch of a partition: from an offset up to, and without, another. */
export interface LogRange {
  readonly partition: number;
  readonly from: number;
  readonly end: number;
}

/** Every partition of a topic as it is now; with `sinceMs` only what was appended at that time or later. Empty ones left out. */
export async function logRanges(kafka: Kafka, topic: string, sinceMs?: number): Promise<LogRange[]> {
  const admin = kafka.admin();
  try {
    await admin.connect();
    const partitions = await admin.fetchTopicOffsets(topic);
    const since = sinceMs === undefined ? [] : await admin.fetchTopicOffsetsByTimestamp(topic, sinceMs);
    const starts = new Map(since.map(({ partition, offset }) => [partition, Number(offset)]));
    return partitions
      .map(({ partition, low, high }) => ({ partition, from: starts.get(partition) ?? Number(low), end: Number(high) }))
      .filter(({ from, end }) => from < end);
  } finally {
    await admin.disconnect();
  }
}

export interface ReadLogOptions {
  readonly topic: TopicDefinition;
  readonly ranges: readonly LogRange[];
  /** Of the group that reads: what it is allowed to be called. It commits nothing, and ends with the read. */
  readonly groupPrefix: string;
  /** Each record of the ranges once, in the order of its partition. What it throws ends the read. */
  readonly onRecord: (record: RawRecord) => void | Promise<void>;
}

/** Without anything read for this long the read has failed. */
const silenceMs = 30_000;

/** Reads the ranges to their ends. */
export async function readLog(kafka: Kafka, options: ReadLogOptions): Promise<void> {
  if (options.ranges.length === 0) return;
  const groupId = `${options.groupPrefix}.operate-${randomUUID()}`;
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 });
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [options.topic.name], fromBeginning: true });
    await new Promise<void>((resolve, reject) => new Reading(consumer, options, { resolve, reject }).start());
  } finally {
    await consumer.disconnect();
  }
}

interface End {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

class Reading {
  readonly #consumer: Consumer;
  readonly #options: ReadLogOptions;
  readonly #end: End;
  /** The next offset of each partition that is not read to its end. */
  readonly #next: Map<number, number>;
  readonly #ends: ReadonlyMap<number, number>;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;

  constructor(consumer: Consumer, options: ReadLogOptions, end: End) {
    this.#consumer = consumer;
    this.#options = options;
    this.#end = end;
    this.#next = new Map(options.ranges.map(({ partition, from }) => [partition, from]));
    this.#ends = new Map(options.ranges.map(({ partition, end: last }) => [partition, last]));
  }

  start(): void {
    this.#watch();
    this.#consumer.on("consumer.crash", ({ payload }) => this.#stop(payload.error));
    const run = this.#consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch: (batch) => this.#take(batch) });
    run.catch((error: unknown) => this.#stop(error));
    const { name: topic, partitions } = this.#options.topic;
    for (const [partition, from] of this.#next) this.#consumer.seek({ topic, partition, offset: String(from) });
    const others = Array.from({ length: partitions }, (_, partition) => partition).filter((other) => !this.#next.has(other));
    this.#consumer.pause([{ topic, partitions: others }]);
  }

  async #take({ batch, heartbeat }: EachBatchPayload): Promise<void> {
    const { topic, partition } = batch;
    try {
      for (const message of batch.messages) {
        if (this.#ended || !this.#isNext(partition, Number(message.offset))) continue;
        await this.#options.onRecord(rawRecord({ topic, partition }, message));
        this.#next.set(partition, Number(message.offset) + 1);
        this.#watch();
        await heartbeat();
      }
      this.#finish(partition, Number(batch.lastOffset()) + 1);
    } catch (error) {
      this.#stop(error);
    }
  }

  /** A batch that was fetched before the reader was set to its place is passed over. */
  #isNext(partition: number, offset: number): boolean {
    const next = this.#next.get(partition);
    return next !== undefined && offset >= next && offset < (this.#ends.get(partition) ?? 0);
  }

  #finish(partition: number, position: number): void {
    if (this.#next.has(partition) && position >= (this.#ends.get(partition) ?? 0)) this.#next.delete(partition);
    if (this.#next.size === 0) this.#stop();
  }

  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#ended) return;
    const silent = () => this.#stop(new Error(`${this.#options.topic.name} gave nothing more for ${silenceMs / 1_000} s`));
    this.#timer = setTimeout(silent, silenceMs);
  }

  #stop(error?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    if (error === undefined) this.#end.resolve();
    else this.#end.reject(error);
  }
}
