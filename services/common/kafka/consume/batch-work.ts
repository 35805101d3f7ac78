import { setTimeout as delay } from "node:timers/promises";
import type { Kafka, KafkaMessage } from "kafkajs";
import { AbandonedError, messageOf, PoisonRecordError } from "../../errors.ts";
import type { Counter } from "../../metrics/metrics.ts";
import { BrokerClock } from "../../retry/broker-clock.ts";
import { dueMs } from "../../retry/delay-tier.ts";
import type { DecodedRecord, TopicPartition } from "../contracts.ts";
import type { BatchConsumer, BatchConsumerOptions, BatchTopic } from "./batch-consumer.ts";
import { Brake } from "./brake.ts";
import type { DeadLetterCause } from "./dead-letters.ts";
import { GroupConsumer } from "./group-consumer.ts";
import type { FetchedBatch, GroupWork } from "./group-work.ts";
import { Holds } from "./holds.ts";
import { PartitionMap } from "./partition-map.ts";
import { type Decoded, decodeMessage, rawRecord } from "./raw-record.ts";

const sliceLimit = { records: 1_000, bytes: 4 * 1024 * 1024 };
/** An error of our own code may come from a passing state; thrown as often as this in a row, it comes from the records. */
const crashTries = 3;
const brakeHoldMs = 30_000;
const abandonedHoldMs = 1_000;
/** The broker's clock is better known later: a long wait is looked at again. */
const longestDueHoldMs = 60_000;

interface Slice {
  readonly records: readonly DecodedRecord<never>[];
  /** What came after them. */
  readonly problem?: Exclude<Decoded<never>, { kind: "record" }>;
}

/** How a piece of a batch ended: the first `count` records are done, the piece is to be halved, or the partition waits. */
type Step =
  | { readonly kind: "done"; readonly count: number }
  | { readonly kind: "halve" }
  | { readonly kind: "hold"; readonly ms: number }
  | { readonly kind: "left" };

const left: Step = { kind: "left" };

/** A partition's recent trouble; forgotten when a whole piece of it was processed. */
interface Trouble {
  readonly failures: number;
  readonly crashes: number;
  readonly cause: string;
}

export class BatchWork implements BatchConsumer, GroupWork {
  readonly #options: BatchConsumerOptions;
  readonly #topics: ReadonlyMap<string, BatchTopic>;
  readonly #member: GroupConsumer;
  readonly #holds: Holds;
  readonly #brokerClock: BrokerClock;
  readonly #brake: Brake;
  readonly #trouble = new PartitionMap<Trouble>();
  readonly #processed: Counter<"result">;

  constructor(kafka: Kafka, options: BatchConsumerOptions) {
    this.#options = options;
    this.#topics = new Map(options.topics.map((entry) => [entry.topic.name, entry]));
    this.#brokerClock = options.brokerClock ?? new BrokerClock();
    this.#brake = new Brake(options.brakeAfter ?? 20);
    const topics = options.topics.map(({ topic }) => topic);
    this.#member = new GroupConsumer(kafka, { ...options, topics }, this);
    this.#holds = new Holds(this.#member);
    this.#processed = options.metrics.counter("consumer_records_total", "Records that were processed or given up", {
      result: ["processed", "dead_lettered"],
    });
    options.metrics.gauge("consumer_brake_engaged", "1: too many records in a row cannot be processed", {}, (gauge) =>
      gauge.set(this.#brake.engaged ? 1 : 0),
    );
  }

  start(): Promise<void> {
    return this.#member.start();
  }

  get assigned(): readonly TopicPartition[] {
    return this.#member.assigned;
  }

  health(): string | undefined {
    return this.#brake.health() ?? this.#member.health();
  }

  async stop(): Promise<void> {
    this.#holds.clear();
    await this.#member.stop();
  }

  onAssigned(assigned: readonly TopicPartition[]): void {
    this.#holds.clear();
    this.#trouble.clear();
    this.#options.onAssigned?.(assigned);
  }

  async onBatch(batch: FetchedBatch): Promise<void> {
    this.#learnClock(batch);
    const dueCount = this.#dueCount(batch);
    let index = 0;
    let size = sliceLimit.records;
    while (index < dueCount && !batch.signal.aborted) {
      const slice = await this.#slice(batch, index, Math.min(index + size, dueCount));
      const step = await this.#step(batch, index, slice);
      if (step.kind === "left") return;
      if (step.kind === "hold") return this.#holds.hold(batch, step.ms);
      if (step.kind === "halve") size = Math.ceil(slice.records.length / 2);
      else {
        if (!(await this.#commit(batch, index + step.count - 1))) return;
        if (size === sliceLimit.records) this.#trouble.delete(batch);
        size = Math.min(2 * size, sliceLimit.records);
        index += step.count;
      }
    }
    if (index < batch.messages.length) this.#holdUntilDue(batch, index);
  }

  /** What is fetched was in the log just now: the broker's clock has reached its append time. */
  #learnClock({ messages }: FetchedBatch): void {
    const newest = messages.at(-1);
    const seenAtMs = this.#options.clock.monotonicMs();
    if (newest !== undefined) this.#brokerClock.observe({ appendTimeMs: Number(newest.timestamp), seenAtMs });
  }

  /** How many of the batch's records are due: the head is always the next one that is. */
  #dueCount({ topic, messages }: FetchedBatch): number {
    const { delayMs } = this.#topicOf(topic);
    if (delayMs === null) return messages.length;
    const nowMs = this.#brokerClock.nowMs(this.#options.clock.monotonicMs()) ?? 0;
    const waiting = messages.findIndex((message) => dueMs(timeOf(message), delayMs) > nowMs);
    return waiting === -1 ? messages.length : waiting;
  }

  #holdUntilDue(batch: FetchedBatch, index: number): void {
    const head = batch.messages[index];
    const { delayMs } = this.#topicOf(batch.topic);
    const nowMs = this.#brokerClock.nowMs(this.#options.clock.monotonicMs());
    if (head === undefined || delayMs === null || nowMs === undefined || batch.signal.aborted) return;
    this.#holds.hold(batch, Math.min(Math.ceil(dueMs(timeOf(head), delayMs) - nowMs), longestDueHoldMs));
  }

  /** Decoded records from `start` on, up to the first that cannot be, and within the limits of a slice. */
  async #slice(batch: FetchedBatch, start: number, end: number): Promise<Slice> {
    const records: DecodedRecord<never>[] = [];
    let bytes = 0;
    for (const message of batch.messages.slice(start, end)) {
      bytes += message.value?.length ?? 0;
      if (records.length > 0 && bytes > sliceLimit.bytes) break;
      const decoded = await decodeMessage<never>(this.#options.codec, batch, message);
      if (decoded.kind !== "record") return { records, problem: decoded };
      records.push(decoded.record);
    }
    return { records };
  }

  async #step(batch: FetchedBatch, index: number, { records, problem }: Slice): Promise<Step> {
    if (records.length > 0) return this.#handle(batch, index, records);
    if (problem === undefined) return left;
    if (problem.kind === "unreachable") return this.#fail(batch, problem.message);
    return this.#bury(batch, index, problem);
  }

  async #handle(batch: FetchedBatch, index: number, records: readonly DecodedRecord<never>[]): Promise<Step> {
    const { topic, partition, signal, highWatermark } = batch;
    const mayAct = (): boolean => !signal.aborted && this.#member.mayAct(batch);
    try {
      const { handler } = this.#entryOf(topic);
      await handler(records, { topic, partition, signal, highWatermark, mayAct });
    } catch (error) {
      return this.#judge(batch, error, { index, count: records.length });
    }
    this.#brake.countProcessed();
    this.#processed.inc({ result: "processed" }, records.length);
    return { kind: "done", count: records.length };
  }

  /** What a handler's error means for its records. */
  #judge(batch: FetchedBatch, error: unknown, { index, count }: { index: number; count: number }): Step | Promise<Step> {
    if (batch.signal.aborted) return left;
    // The lease ran out, though the partition may still be ours: heartbeats will tell.
    if (error instanceof AbandonedError) return { kind: "hold", ms: abandonedHoldMs };
    const cause = causeOf(error);
    if (cause === undefined) return this.#fail(batch, messageOf(error), error);
    if (cause === "crashed" && this.#crashesOf(batch, error) < crashTries) return this.#fail(batch, messageOf(error), error);
    return count > 1 ? { kind: "halve" } : this.#bury(batch, index, { cause, message: messageOf(error) });
  }

  #crashesOf(batch: FetchedBatch, error: unknown): number {
    const { failures = 0, crashes = 0 } = this.#trouble.get(batch) ?? {};
    this.#trouble.set(batch, { failures, crashes: crashes + 1, cause: messageOf(error) });
    return crashes + 1;
  }

  #fail(batch: FetchedBatch, cause: string, error?: unknown): Step {
    const { failures = 0, crashes = 0 } = this.#trouble.get(batch) ?? {};
    this.#trouble.set(batch, { failures: failures + 1, crashes, cause });
    const ms = Math.min(100 * 2 ** failures, 10_000);
    this.#options.logger.warn({ ...placeOf(batch), cause, err: error, waitMs: ms }, "batch.failed");
    return { kind: "hold", ms };
  }

  async #bury(batch: FetchedBatch, index: number, why: { cause: DeadLetterCause; message: string }): Promise<Step> {
    const message = batch.messages[index];
    if (message === undefined) return left;
    if (this.#brake.engaged) {
      this.#options.logger.error({ ...placeOf(batch), offset: message.offset, ...why }, "consumer.braked");
      return { kind: "hold", ms: brakeHoldMs };
    }
    try {
      await this.#options.deadLetters.put(rawRecord(batch, message), why.cause, why.message, batch.signal);
    } catch (error) {
      return batch.signal.aborted ? left : this.#fail(batch, messageOf(error), error);
    }
    this.#brake.countPoison();
    this.#trouble.delete(batch);
    this.#processed.inc({ result: "dead_lettered" });
    this.#options.logger.error({ ...placeOf(batch), offset: message.offset, ...why }, "record.dead_lettered");
    return { kind: "done", count: 1 };
  }

  /** Up to and with the record at this index; tried until it is acknowledged. False when the assignment has ended. */
  async #commit(batch: FetchedBatch, index: number): Promise<boolean> {
    for (let waitMs = 100; !batch.signal.aborted; waitMs = Math.min(2 * waitMs, 2_000)) {
      const answer = await this.#member.commit([[batch, batch.offsetAfter(index)]]);
      if (answer === "committed") {
        batch.advance(index);
        return true;
      }
      if (answer === "lost") return false;
      await delay(waitMs, undefined, { signal: batch.signal }).catch(() => undefined);
    }
    return false;
  }

  #entryOf(topic: string): BatchTopic {
    const entry = this.#topics.get(topic);
    if (entry === undefined) throw new Error(`no handler for ${topic}`);
    return entry;
  }

  #topicOf(topic: string): BatchTopic["topic"] {
    return this.#entryOf(topic).topic;
  }
}

const timeOf = (message: KafkaMessage): { timestampMs: number } => ({ timestampMs: Number(message.timestamp) });
const placeOf = ({ topic, partition }: TopicPartition): TopicPartition => ({ topic, partition });

/** undefined: lost infrastructure. The errors of the language itself are ours. */
function causeOf(error: unknown): "rejected" | "crashed" | undefined {
  if (error instanceof PoisonRecordError) return "rejected";
  const ours = [TypeError, RangeError, ReferenceError, SyntaxError];
  return ours.some((kind) => error instanceof kind) ? "crashed" : undefined;
}
