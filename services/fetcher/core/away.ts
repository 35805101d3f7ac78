import type { TopicDefinition } from "../../common/kafka/topics.ts";

/**
 * So many records a second may come back only to find their queue full again, at some 20 µs each: of those that leave the memory
 * for the first time, when little is known of their host's pace yet, and of those that have been away before.
 */
const returnsPerSecond = { first: 3_000, again: 1_500 };

export interface Backlog {
  readonly queue: string;
  /** Until its host has done what waits for it in memory. */
  readonly waitMs: number;
  /** Each further record adds so much. */
  readonly msPerRecord: number;
}

/**
 * How many records of which queue wait in the delay tiers, as far as this process has put them there, and so where the next one
 * goes. Only an estimate: after a restart or a rebalance it begins at nothing, and what is moved then comes back too early once.
 */
export class Away {
  readonly #delaysMs: readonly number[];
  readonly #indexes: ReadonlyMap<string, number>;
  /** By queue, then by tier. */
  readonly #counts = new Map<string, number[]>();
  #total = 0;

  /** `tiers`: shortest first. */
  constructor(tiers: readonly TopicDefinition[]) {
    this.#delaysMs = tiers.map(({ delayMs }) => delayMs ?? 0);
    this.#indexes = new Map(tiers.map(({ name }, index) => [name, index]));
  }

  left(queue: string, tier: string): void {
    const index = this.#indexes.get(tier);
    if (index !== undefined) this.#add(queue, index, 1);
  }

  /** A record was taken from this topic. */
  returned(queue: string, topic: string): void {
    const index = this.#indexes.get(topic);
    const count = index === undefined ? 0 : (this.#counts.get(queue)?.[index] ?? 0);
    if (index === undefined || count === 0) return;
    this.#add(queue, index, -1);
    if (this.#counts.get(queue)?.every((left) => left === 0)) this.#counts.delete(queue);
  }

  forget(): void {
    this.#counts.clear();
    this.#total = 0;
  }

  /**
   * The index of the tier for the next record of the queue, which was read from this topic; it counts as left. A host that turns out
   * faster than it looked idles for as long as its records are away, one that turns out slower costs a move more. So the tier is the
   * shortest that is affordable, never longer than its host has work for, and a long one only after a shorter one.
   */
  place(backlog: Backlog, topic: string): number {
    const from = this.#indexes.get(topic);
    const longest = from === undefined ? this.#delaysMs.length - 2 : from + 1;
    const affordable = this.#shortestAffordable(from === undefined ? returnsPerSecond.first : returnsPerSecond.again);
    const index = Math.max(0, Math.min(longest, affordable, this.#longestWithoutIdling(backlog)));
    this.#add(backlog.queue, index, 1);
    return index;
  }

  /** The longest tier whose time the host is busy for: with what waits in memory, and with what comes back earlier. */
  #longestWithoutIdling({ queue, waitMs, msPerRecord }: Backlog): number {
    const counts = this.#counts.get(queue);
    let busyMs = waitMs;
    let longest = 0;
    for (const [index, delayMs] of this.#delaysMs.entries()) {
      if (busyMs >= delayMs) longest = index;
      busyMs += (counts?.[index] ?? 0) * msPerRecord;
    }
    return longest;
  }

  /** As if all that is away were in one tier. */
  #shortestAffordable(perSecond: number): number {
    const index = this.#delaysMs.findIndex((delayMs) => this.#total < (delayMs / 1_000) * perSecond);
    return index === -1 ? this.#delaysMs.length - 1 : index;
  }

  #add(queue: string, index: number, change: number): void {
    const counts = this.#counts.get(queue) ?? this.#delaysMs.map(() => 0);
    this.#counts.set(queue, counts);
    counts[index] = (counts[index] ?? 0) + change;
    this.#total += change;
  }
}
