import type { TopicPartition } from "../../common/kafka/contracts.ts";
import type { Position, Work } from "./work.ts";

/** A waiting record lets the low-water mark stand still for so long while newer ones of its partition leave. */
const longestMs = 30_000;
/** A record that has just come is not moved. */
const shortestMs = 2_000;
/** Then it is, once a crash would repeat about so many calls of its partition: twelve of them share a window of 20,000. */
const farthestCount = 1_600;

/**
 * Which waiting records hold the low-water mark of their partition back. A mark that stands still costs nothing by itself: but what
 * has left above it is called, or moved, again after a crash.
 */
export class HeldBack {
  readonly #newestCalled = new Newest();
  readonly #newestLeft = new Newest();

  left(position: Position, { moved }: { readonly moved: boolean }): void {
    this.#newestLeft.note(position);
    if (!moved) this.#newestCalled.note(position);
  }

  lost(partitions: readonly TopicPartition[]): void {
    for (const newest of [this.#newestCalled, this.#newestLeft]) newest.forget(partitions);
  }

  behindCalled({ positions }: Work): boolean {
    return positions.some((position) => this.#newestCalled.beyond(position) > 0);
  }

  holdsBack(work: Work, nowMs: number): boolean {
    const waitedMs = nowMs - work.offeredAtMs;
    if (waitedMs < shortestMs) return false;
    if (isOverdue(work, nowMs)) return work.positions.some((position) => this.#newestLeft.beyond(position) > 0);
    return work.positions.some((position) => this.#newestCalled.beyond(position) > farthestCount);
  }
}

/** It has waited for so long that it must not wait on, whenever its turn may come. */
export function isOverdue({ offeredAtMs }: Work, nowMs: number): boolean {
  return nowMs - offeredAtMs >= longestMs;
}

/** The newest offset by partition. Asked for every record: a key of text for each would cost more than all the rest. */
class Newest {
  readonly #byTopic = new Map<string, number[]>();

  note({ topic, partition, offset }: Position): void {
    const offsets = this.#byTopic.get(topic) ?? [];
    this.#byTopic.set(topic, offsets);
    offsets[partition] = Math.max(offsets[partition] ?? -1, offset);
  }

  forget(partitions: readonly TopicPartition[]): void {
    for (const { topic, partition } of partitions) delete this.#byTopic.get(topic)?.[partition];
  }

  /** How far the newest one is beyond this one. */
  beyond({ topic, partition, offset }: Position): number {
    return (this.#byTopic.get(topic)?.[partition] ?? -1) - offset;
  }
}
