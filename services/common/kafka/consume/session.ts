import { AbandonedError } from "../../errors.ts";
import type { TopicPartition } from "../contracts.ts";
import { PartitionMap } from "./partition-map.ts";

interface Place {
  /** The next offset to be read; undefined until it was looked up. */
  readonly position: number | undefined;
  /** The offset after the last record, as far as is known. */
  readonly end: number;
}

/** One assignment, from the join that brought it to its loss. What was begun under one session is never finished under another. */
export class Session {
  readonly #places = new PartitionMap<Place>();
  readonly #ending = new AbortController();
  readonly #running = new Set<Promise<void>>();
  #membershipError: unknown;

  constructor(partitions: readonly TopicPartition[]) {
    for (const partition of partitions) this.#places.set(partition, { position: undefined, end: 0 });
  }

  get partitions(): readonly TopicPartition[] {
    return this.#places.partitions;
  }

  has(partition: TopicPartition): boolean {
    return this.#places.has(partition);
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  get ended(): boolean {
    return this.#ending.signal.aborted;
  }

  /** What kafkajs has to be told so that it joins again. */
  get membershipError(): unknown {
    return this.#membershipError;
  }

  end(membershipError?: unknown): void {
    this.#membershipError ??= membershipError;
    this.#ending.abort(new AbandonedError("the partition's assignment has ended"));
  }

  position(partition: TopicPartition): number | undefined {
    return this.#places.get(partition)?.position;
  }

  /** Records behind the position, as far as is known. */
  unread(partition: TopicPartition): number {
    const { position, end } = this.#places.get(partition) ?? {};
    return position === undefined ? 0 : Math.max(0, (end ?? 0) - position);
  }

  unreadOf(topic: string): number {
    const partitions = this.ended ? [] : this.partitions.filter((partition) => partition.topic === topic);
    return partitions.reduce((sum, partition) => sum + this.unread(partition), 0);
  }

  place(partition: TopicPartition, position: number, end: number): void {
    if (this.has(partition)) this.#places.set(partition, { position, end });
  }

  /** Steps over offsets without records. */
  advance(partition: TopicPartition, position: number): void {
    const place = this.#places.get(partition);
    if (place?.position !== undefined) this.place(partition, position, Math.max(place.end, position));
  }

  track(work: Promise<void>): Promise<void> {
    const tracked = work.finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
    return tracked;
  }

  /** When nothing of this session runs any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
  }
}
