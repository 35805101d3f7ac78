import type { Clock } from "../../clock.ts";
import type { Histogram, Metrics } from "../../metrics/metrics.ts";
import type { BrokerClock } from "../../retry/broker-clock.ts";
import { HeldRecords } from "../../retry/delay-tier.ts";
import type { TopicPartition } from "../contracts.ts";
import type { TopicDefinition } from "../topics.ts";
import { PartitionMap } from "./partition-map.ts";

/** What is known of the broker's clock may grow while records wait. */
const longestNapMs = 250;
/** Between two looks whether there is room again for records that are due. */
const roomNapMs = 50;
/** Of all partitions together, before everything else that waits gets its turn: a tier that was away brings ten thousands at once. */
const releasedAtOnce = 250;

export interface TiersOptions<R> {
  readonly tiers: readonly TopicDefinition[];
  readonly brokerClock: BrokerClock;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Takes over due records of one partition, in order. */
  readonly release: (partition: TopicPartition, records: readonly R[], highWatermark: number) => void;
  /** Due records wait on while there is none. */
  readonly hasRoom: () => boolean;
  /** Nothing is held of the partition any more. */
  readonly onEmpty: (partition: TopicPartition) => void;
}

interface Held<R extends { readonly timestampMs: number }> {
  readonly records: HeldRecords<R>;
  highWatermark: number;
}

/** The fetched records of the delay tiers, released when they are due on the broker's clock: never early. */
export class Tiers<R extends { readonly timestampMs: number }> {
  readonly #options: TiersOptions<R>;
  readonly #delays: ReadonlyMap<string, number>;
  readonly #lateness: Histogram;
  readonly #held = new PartitionMap<Held<R>>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: TiersOptions<R>) {
    this.#options = options;
    this.#delays = new Map(options.tiers.map(({ name, delayMs }) => [name, delayMs ?? 0]));
    const help = "From the instant a record of a delay tier was due to its release";
    this.#lateness = options.metrics.duration("retry_lateness_seconds", help, {});
  }

  has(topic: string): boolean {
    return this.#delays.has(topic);
  }

  hold(partition: TopicPartition, records: readonly R[], highWatermark: number): void {
    const fresh = { records: new HeldRecords<R>(this.#delays.get(partition.topic) ?? 0), highWatermark };
    const held = this.#held.get(partition) ?? fresh;
    this.#held.set(partition, held);
    held.records.hold(records);
    held.highWatermark = highWatermark;
    this.#arm();
  }

  drop(partition: TopicPartition): void {
    this.#held.delete(partition);
  }

  /** Nothing is released any more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #releaseDue(): void {
    const nowMs = this.#nowMs() ?? Number.NEGATIVE_INFINITY;
    const due = [...this.#held].filter(([, { records }]) => (records.nextDueMs ?? Number.POSITIVE_INFINITY) <= nowMs);
    for (const [partition, held] of due) {
      if (this.#stopped || !this.#options.hasRoom()) break;
      this.#lateness.observe((nowMs - (held.records.nextDueMs ?? nowMs)) / 1000);
      const released = held.records.release(nowMs, Math.ceil(releasedAtOnce / due.length));
      if (held.records.size === 0) this.#held.delete(partition);
      this.#options.release(partition, released, held.highWatermark);
      if (held.records.size === 0) this.#options.onEmpty(partition);
    }
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    if (this.#held.size === 0 || this.#stopped) return;
    const nextMs = Math.min(...[...this.#held].map(([, { records }]) => records.nextDueMs ?? Number.POSITIVE_INFINITY));
    const napMs = Math.ceil(nextMs - (this.#nowMs() ?? Number.NEGATIVE_INFINITY));
    const shortestNapMs = this.#options.hasRoom() ? 1 : roomNapMs;
    this.#timer = setTimeout(() => this.#releaseDue(), Math.max(shortestNapMs, Math.min(napMs, longestNapMs)));
  }

  #nowMs(): number | undefined {
    return this.#options.brokerClock.nowMs(this.#options.clock.monotonicMs());
  }
}
