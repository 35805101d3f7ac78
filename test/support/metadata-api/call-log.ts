/** How the simulator ended a call: a status, a fault without one, or a caller that went away first. */
export type CallEnd = `${number}` | "hang" | "reset" | "hostile" | "left";

/** One call as the simulator saw it. */
export interface CallRecord {
  /** From 1, in the order of arrival. */
  readonly sequence: number;
  readonly tokenId: string;
  /** Of this token, 1-based. */
  readonly callNumber: number;
  /** Milliseconds since the epoch, with fractions, from a clock that never goes back. */
  readonly atMs: number;
  /** Calls under way when it arrived, itself included. */
  readonly concurrent: number;
  /** By the hidden limit. */
  readonly refused: boolean;
  /** Bytes of the body that a good or bad answer carried. */
  bodyBytes: number;
  /** undefined while the call is under way. */
  end: CallEnd | undefined;
  /** From arrival to the end. */
  durationMs: number | undefined;
}

export interface CallPage {
  readonly calls: readonly CallRecord[];
  /** Give it as `after` for the next page; the same again when there is nothing new yet. */
  readonly next: number;
  /** Calls that the log has dropped to stay within its bound, of all since it was emptied. */
  readonly dropped: number;
}

/** The last calls, `capacity` of them. */
export class CallLog {
  readonly #capacity: number;
  #ring: CallRecord[] = [];
  #first = 1;
  #count = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Of the next record. Goes on after `clear`, so a page that was asked for before it cannot be mistaken. */
  get nextSequence(): number {
    return this.#first + this.#count;
  }

  add(record: CallRecord): void {
    if (this.#capacity > 0) this.#ring[this.#count % this.#capacity] = record;
    this.#count += 1;
  }

  clear(): void {
    this.#first = this.nextSequence;
    this.#ring = [];
    this.#count = 0;
  }

  page(after: number, mostCalls: number): CallPage {
    const dropped = Math.max(0, this.#count - this.#capacity);
    const from = Math.max(dropped, after + 1 - this.#first);
    const to = Math.min(this.#count, from + mostCalls);
    const calls: CallRecord[] = [];
    for (let index = from; index < to; index++) {
      const record = this.#ring[index % this.#capacity];
      if (record !== undefined) calls.push(record);
    }
    return { calls, next: calls.at(-1)?.sequence ?? Math.max(after, this.#first - 1 + from), dropped };
  }
}
