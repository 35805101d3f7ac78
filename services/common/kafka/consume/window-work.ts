import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import type { Kafka, KafkaMessage } from "kafkajs";
import type { Counter } from "../../metrics/metrics.ts";
import type { DecodedRecord, TopicPartition } from "../contracts.ts";
import type { TopicDefinition } from "../topics.ts";
import { Brake } from "./brake.ts";
import type { DeadLetterCause } from "./dead-letters.ts";
import { GroupConsumer } from "./group-consumer.ts";
import type { FetchedBatch, GroupWork, PlacedStart } from "./group-work.ts";
import { Holds } from "./holds.ts";
import { PartitionMap } from "./partition-map.ts";
import { type Decoded, decodeMessages, rawRecord } from "./raw-record.ts";
import { Tiers } from "./tiers.ts";
import { Budget, PartitionWindow } from "./window.ts";
import type { WindowConsumer, WindowConsumerOptions } from "./window-consumer.ts";

const registryHoldMs = 1_000;
const brakeHoldMs = 30_000;
const defaultBudget = { records: 20_000, bytes: 64 * 1024 * 1024 };
const defaultCommitIntervalMs = 1_000;
/** Before everything else that waits gets its turn: a fetch brings well over a thousand records of a partition. */
const takenAtOnce = 250;

export class WindowWork<T> implements WindowConsumer, GroupWork {
  readonly #options: WindowConsumerOptions<T>;
  readonly #member: GroupConsumer;
  readonly #holds: Holds;
  readonly #tiers: Tiers<DecodedRecord<T>>;
  readonly #brake: Brake;
  readonly #budget: Budget;
  readonly #windows = new PartitionMap<PartitionWindow>();
  readonly #finished: Counter<"result">;
  readonly #stop = new AbortController();
  #full = false;
  #commitTimer: NodeJS.Timeout | undefined;

  constructor(kafka: Kafka, options: WindowConsumerOptions<T>) {
    this.#options = options;
    this.#budget = new Budget(options.budget ?? defaultBudget);
    this.#brake = new Brake(options.brakeAfter ?? 20);
    this.#member = new GroupConsumer(kafka, { ...options, topics: [options.main, ...options.tiers] }, this);
    this.#holds = new Holds(this.#member);
    this.#tiers = new Tiers({
      ...options,
      release: (partition, records, highWatermark) => this.#handOut(partition, records, highWatermark),
      hasRoom: () => !this.#full,
      onEmpty: (partition) => this.#member.resume(partition, "held"),
    });
    const { metrics } = options;
    this.#finished = metrics.counter("consumer_records_total", "Records that were processed or given up", {
      result: ["processed", "dead_lettered"],
    });
    metrics.gauge("consumer_brake_engaged", "1: too many records in a row cannot be processed", {}, (gauge) =>
      gauge.set(this.#brake.engaged ? 1 : 0),
    );
    metrics.gauge("window_records", "Records handed out and not finished", {}, (gauge) => gauge.set(this.#budget.records));
    metrics.gauge("window_bytes", "Their bytes", {}, (gauge) => gauge.set(this.#budget.bytes));
    const help = "From the low-water mark of a partition to what was read of it, in the partition where that is most";
    const topics = [options.main, ...options.tiers];
    metrics.gauge("offset_watermark_gap", help, { topic: topics.map(({ baseName }) => baseName) }, (gauge) => {
      for (const topic of topics) gauge.set({ topic: topic.baseName }, this.#gapOf(topic));
    });
  }

  async start(): Promise<void> {
    await this.#member.start();
    let committing = false;
    this.#commitTimer = setInterval(() => {
      if (committing) return;
      committing = true;
      void this.#commit().finally(() => {
        committing = false;
      });
    }, this.#options.commitIntervalMs ?? defaultCommitIntervalMs);
  }

  get assigned(): readonly TopicPartition[] {
    return this.#member.assigned;
  }

  finish(record: TopicPartition & { readonly offset: number }): void {
    const bytes = this.#windows.get(record)?.finish(record.offset);
    if (bytes === undefined) return;
    this.#finished.inc({ result: "processed" });
    if (bytes > 0) this.#budget.give(bytes);
    this.#makeRoom();
  }

  pause(partition: TopicPartition): void {
    this.#member.pause(partition, "caller");
  }

  resume(partition: TopicPartition): void {
    this.#member.resume(partition, "caller");
  }

  get full(): boolean {
    return this.#full;
  }

  owned(partition: TopicPartition): boolean {
    return this.#member.owned(partition);
  }

  mayAct(partition: TopicPartition): boolean {
    return this.#member.mayAct(partition);
  }

  health(): string | undefined {
    return this.#brake.health() ?? this.#member.health();
  }

  pauseAll(): void {
    this.#stop.abort();
    this.#tiers.stop();
    this.#holds.clear();
    for (const partition of this.assigned) this.#member.pause(partition, "stopping");
  }

  async stop(): Promise<void> {
    this.pauseAll();
    clearInterval(this.#commitTimer);
    for (let tries = 0; tries < 3 && (await this.#commit()) === "failed"; tries += 1) await delay(100);
    await this.#member.stop();
  }

  onAssigned(assigned: readonly TopicPartition[], lost: readonly TopicPartition[]): void {
    this.#holds.clear();
    this.#drop(lost);
    if (this.#stop.signal.aborted) for (const partition of assigned) this.#member.pause(partition, "stopping");
  }

  /**
   * What was read before a rebalance is still here: a kept partition goes on where it was. Unless another member has had it since,
   * as after a stop of this process: then what it has finished must not be done again, and the rest is read again.
   */
  positionOf(partition: TopicPartition, committed = 0): number | undefined {
    const window = this.#windows.get(partition);
    return window?.overtakenBy(committed) ? undefined : window?.position;
  }

  onPlaced(partition: TopicPartition, { offset, committed = 0, replaced }: PlacedStart): void {
    const before = this.#windows.get(partition);
    if (before !== undefined && (replaced || before.overtakenBy(committed))) this.#drop([partition]);
    const window = this.#windows.get(partition) ?? new PartitionWindow(offset, committed);
    this.#windows.set(partition, window);
    window.pass(offset);
    window.noteCommitted(replaced ? offset : committed);
    // What became of the budget between two assignments was told to no partition.
    if (this.#full && !this.#tiers.has(partition.topic)) this.#member.pause(partition, "budget");
    else this.#member.resume(partition, "budget");
  }

  onPassed(partition: TopicPartition, offset: number): void {
    this.#windows.get(partition)?.pass(offset);
  }

  markOf(partition: TopicPartition): number | undefined {
    return this.#windows.get(partition)?.lowWaterMark;
  }

  onRebalancing(): void {
    void this.#commit();
  }

  async onBatch(batch: FetchedBatch): Promise<void> {
    this.#learnClock(batch);
    for (let start = 0; start < batch.messages.length; start += takenAtOnce) {
      if (start > 0) await nextTurn();
      const decoded = await decodeMessages<T>(this.#options.codec, batch, batch.messages.slice(start, start + takenAtOnce));
      if (batch.signal.aborted || this.#stop.signal.aborted) return;
      const { fresh, takenCount } = this.#take(batch, start, decoded);
      if (fresh.length > 0) this.#pass(batch, fresh);
      if (takenCount < decoded.length) return;
    }
  }

  /** Takes records of the batch into the window, up to one for which the partition has to wait. `fresh`: what is new among them. */
  #take(batch: FetchedBatch, start: number, decoded: readonly Decoded<T>[]): { fresh: DecodedRecord<T>[]; takenCount: number } {
    const window = this.#windows.get(batch);
    const fresh: DecodedRecord<T>[] = [];
    let takenCount = 0;
    for (const one of decoded) {
      const message = batch.messages[start + takenCount];
      if (window === undefined || message === undefined || this.#mustWait(batch, one)) break;
      takenCount += 1;
      if (window.add(Number(message.offset)) !== "new") continue;
      if (one.kind === "record") fresh.push(one.record);
      else if (one.kind === "poison") void this.#bury(batch, message, one);
    }
    if (takenCount > 0) {
      window?.pass(batch.offsetAfter(start + takenCount - 1));
      batch.advance(start + takenCount - 1);
    }
    return { fresh, takenCount };
  }

  #pass(batch: FetchedBatch, fresh: readonly DecodedRecord<T>[]): void {
    if (this.#tiers.has(batch.topic)) {
      this.#member.pause(batch, "held");
      this.#tiers.hold(batch, fresh, batch.highWatermark);
    } else this.#handOut(batch, fresh, batch.highWatermark);
  }

  #mustWait(batch: FetchedBatch, one: Decoded<T>): boolean {
    if (one.kind === "record") this.#brake.countProcessed();
    const waits = one.kind === "unreachable" || (one.kind === "poison" && this.#brake.engaged);
    if (waits) {
      this.#options.logger.error({ ...placeOf(batch), cause: one.message }, "consumer.partition_held");
      this.#holds.hold(batch, one.kind === "unreachable" ? registryHoldMs : brakeHoldMs);
    }
    return waits;
  }

  /** The record stays unfinished until its dead letter is acknowledged; a rebalance does not end that. */
  async #bury(
    partition: TopicPartition,
    message: KafkaMessage,
    why: { readonly cause: DeadLetterCause; readonly message: string },
  ): Promise<void> {
    this.#brake.countPoison();
    const record = rawRecord(partition, message);
    try {
      await this.#options.deadLetters.put(record, why.cause, why.message, this.#stop.signal);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.fail(error);
      return;
    }
    this.#options.logger.error({ ...placeOf(record), offset: record.offset, ...why }, "record.dead_lettered");
    this.#finished.inc({ result: "dead_lettered" });
    this.#windows.get(record)?.finish(record.offset);
  }

  #handOut(partition: TopicPartition, records: readonly DecodedRecord<T>[], highWatermark: number): void {
    const window = this.#windows.get(partition);
    const taken = records.filter((record) => window?.handOut(record.offset, Math.max(1, record.bytes)));
    for (const { bytes } of taken) this.#budget.take(Math.max(1, bytes));
    if (this.#budget.full && !this.#full) {
      this.#full = true;
      for (const assigned of this.#mainPartitions()) this.#member.pause(assigned, "budget");
    }
    if (taken.length > 0) this.#options.onRecords(taken, { highWatermark });
  }

  #makeRoom(): void {
    if (!this.#full || !this.#budget.roomy) return;
    this.#full = false;
    for (const partition of this.#mainPartitions()) this.#member.resume(partition, "budget");
  }

  #gapOf({ name }: TopicDefinition): number {
    const ofTopic = [...this.#windows].filter(([{ topic }]) => topic === name);
    return Math.max(0, ...ofTopic.map(([, window]) => window.position - window.lowWaterMark));
  }

  #mainPartitions(): readonly TopicPartition[] {
    return this.assigned.filter(({ topic }) => topic === this.#options.main.name);
  }

  #drop(partitions: readonly TopicPartition[]): void {
    for (const partition of partitions) {
      for (const bytes of this.#windows.get(partition)?.handedOut() ?? []) this.#budget.give(bytes);
      this.#windows.delete(partition);
      this.#tiers.drop(partition);
      this.#member.resume(partition, "held");
    }
    if (partitions.length > 0) this.#options.onLost(partitions);
    this.#makeRoom();
  }

  async #commit(): Promise<"committed" | "failed" | "lost"> {
    const marks: [TopicPartition, number, PartitionWindow][] = [];
    for (const [partition, window] of this.#windows) {
      if (window.toCommit !== undefined) marks.push([partition, window.toCommit, window]);
    }
    const answer = await this.#member.commit(marks.map(([partition, mark]) => [partition, mark]));
    if (answer === "committed") for (const [, mark, window] of marks) window.noteCommitted(mark);
    return answer;
  }

  /** What is fetched was just in the log: the broker's clock has reached its append time. */
  #learnClock({ messages }: FetchedBatch): void {
    const newest = messages.at(-1);
    const seenAtMs = this.#options.clock.monotonicMs();
    if (newest !== undefined) this.#options.brokerClock.observe({ appendTimeMs: Number(newest.timestamp), seenAtMs });
  }
}

const placeOf = ({ topic, partition }: TopicPartition): TopicPartition => ({ topic, partition });
