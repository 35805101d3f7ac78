import type { TopicDefinition } from "../../common/kafka/topics.ts";

/** So much faster than now a host may turn out, and still find work at any time: a limit that rises fourfold, and what we measure of it. */
const speedUp = 5;

/** How long the host of a queue has work. */
export interface Busy {
  /** It does nothing before. */
  readonly asleepMs: number;
  /** Then it does what waits for it in memory. */
  readonly waitingMs: number;
  /** Each further record adds so much. */
  readonly msPerRecord: number;
}

interface QueueAway {
  /** By tier. */
  readonly counts: number[];
  /** Whether any of them was moved, not put off for another attempt. */
  overflowed: boolean;
}

/**
 * How many records of which queue wait in the delay tiers, as far as this process has put them there, and so where the next one
 * goes. Only an estimate: after a restart or a rebalance it begins at nothing, and what is moved then comes back too early once.
 */
export class Away {
  readonly #delaysMs: readonly number[];
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #queues = new Map<string, QueueAway>();
  /** By tier, of all queues. */
  readonly #totals: number[];

  /** `tiers`: shortest first. */
  constructor(tiers: readonly TopicDefinition[]) {
    this.#delaysMs = tiers.map(({ delayMs }) => delayMs ?? 0);
    this.#indexes = new Map(tiers.map(({ name }, index) => [name, index]));
    this.#totals = tiers.map(() => 0);
  }

  /** Records of this queue that were moved are not back yet. */
  overflowed(queue: string): boolean {
    return this.#queues.get(queue)?.overflowed ?? false;
  }

  left(queue: string, tier: string): void {
    const index = this.#indexes.get(tier);
    if (index !== undefined) this.#add(queue, index);
  }

  /** A record was taken from this topic. */
  returned(queue: string, topic: string): void {
    const index = this.#indexes.get(topic);
    if (index === undefined) return;
    const away = this.#queues.get(queue);
    const count = away?.counts[index] ?? 0;
    if (away === undefined || count === 0) return;
    away.counts[index] = count - 1;
    this.#totals[index] = (this.#totals[index] ?? 0) - 1;
    if (away.counts.every((left) => left === 0)) this.#queues.delete(queue);
  }

  forget(): void {
    this.#queues.clear();
    this.#totals.fill(0);
  }

  /**
   * The index of the tier for the next record of the queue; it counts as moved. Never a tier that its host would have to wait for.
   * Of the others the longest that it would not have to wait for either if it were five times as fast, or a longer one when so many
   * are away that more than `perSecond` would be back every second.
   */
  place(queue: string, busy: Busy, perSecond: number): number {
    const index = Math.min(
      this.#longestWithoutIdling(queue, busy, 1),
      Math.max(this.#longestWithoutIdling(queue, busy, speedUp), this.#shortestAffordable(perSecond)),
    );
    this.#add(queue, index).overflowed = true;
    return index;
  }

  /** The longest tier whose time the host is busy for: with what waits in memory, and with what comes back earlier. */
  #longestWithoutIdling(queue: string, { asleepMs, waitingMs, msPerRecord }: Busy, speed: number): number {
    const counts = this.#queues.get(queue)?.counts;
    let busyMs = asleepMs + waitingMs / speed;
    let longest = 0;
    for (const [index, delayMs] of this.#delaysMs.entries()) {
      if (busyMs >= delayMs) longest = index;
      busyMs += ((counts?.[index] ?? 0) * msPerRecord) / speed;
    }
    return longest;
  }

  #shortestAffordable(perSecond: number): number {
    const index = this.#delaysMs.findIndex((delayMs, tier) => (this.#totals[tier] ?? 0) < (delayMs / 1_000) * perSecond);
    return index === -1 ? this.#delaysMs.length - 1 : index;
  }

  #add(queue: string, index: number): QueueAway {
    const away = this.#queues.get(queue) ?? { counts: this.#delaysMs.map(() => 0), overflowed: false };
    this.#queues.set(queue, away);
    away.counts[index] = (away.counts[index] ?? 0) + 1;
    this.#totals[index] = (this.#totals[index] ?? 0) + 1;
    return away;
  }
}
