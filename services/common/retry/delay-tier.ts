/** The smallest tier that is long enough for a wait; the longest one when none is. `tiers`: shortest first, at least one. */
export function tierFor<T extends { readonly delayMs: number | null }>(waitMs: number, tiers: readonly T[]): T {
  const tier = tiers.find(({ delayMs }) => (delayMs ?? 0) >= waitMs) ?? tiers.at(-1);
  if (tier === undefined) throw new Error("there is no delay tier");
  return tier;
}

/**
 * When a record of a delay tier may go on, on the broker's clock: the delay is the topic's, and counts from the append time, which
 * the broker cuts to whole milliseconds: the record may have come almost one later.
 */
export function dueMs(record: { readonly timestampMs: number }, delayMs: number): number {
  return record.timestampMs + 1 + delayMs;
}

/** The fetched records of one partition of a delay tier. They wait equally long, so that the head is always the next one due. */
export class HeldRecords<R extends { readonly timestampMs: number }> {
  readonly #delayMs: number;
  #records: readonly R[] = [];

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  get size(): number {
    return this.#records.length;
  }

  hold(records: readonly R[]): void {
    this.#records = [...this.#records, ...records];
  }

  /** Removes and returns what is due at this time of the broker's clock, in order, and at most so many. */
  release(brokerNowMs: number, limit = Number.POSITIVE_INFINITY): readonly R[] {
    const waiting = this.#records.findIndex((record, index) => index >= limit || dueMs(record, this.#delayMs) > brokerNowMs);
    const count = waiting === -1 ? this.#records.length : waiting;
    const due = this.#records.slice(0, count);
    this.#records = this.#records.slice(count);
    return due;
  }

  /** On the broker's clock; undefined when nothing is held. */
  get nextDueMs(): number | undefined {
    const [head] = this.#records;
    return head === undefined ? undefined : dueMs(head, this.#delayMs);
  }
}
