/** A record on its way to a partition, as the queue sees it. */
export interface Queued {
  readonly topic: string;
  readonly partition: number;
  /** What it takes in a record batch. */
  readonly bytes: number;
  /** It stands in its line; the queue's own mark. */
  waiting: boolean;
  /** Answered, or wanted no more: it leaves its line without being taken. */
  done: boolean;
}

/** What one call carries for one partition, in order. */
export interface Part<R extends Queued> {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly R[];
}

/** Of one call: its records, its bytes, and the bytes of one partition in it. A record above the bytes goes alone. */
export interface CallLimits {
  readonly recordCount: number;
  readonly bytes: number;
  readonly partitionBytes: number;
}

interface Line<R> {
  readonly topic: string;
  readonly partition: number;
  waiting: R[];
  /** After a failure the whole line waits: a record behind must not overtake the one that is tried again. */
  restsUntilMs: number;
  failures: number;
  /** Halved when the broker finds a batch too large, doubled when it takes one. */
  recordLimit: number;
}

const restMs = { first: 50, longest: 1_000 };

/**
 * The records that wait to be produced: one line per partition, each in the order of submission, cut into calls. A call takes
 * from every line that does not rest, beginning with the line that was served longest ago.
 */
export class ProduceQueue<R extends Queued> {
  readonly #limits: CallLimits;
  /** In the order of service: Map keeps the order of insertion. */
  readonly #lines = new Map<string, Line<R>>();
  #recordCount = 0;
  #bytes = 0;
  /** Records for one partition come one after the other. */
  #lastLine: Line<R> | undefined;

  constructor(limits: CallLimits) {
    this.#limits = limits;
  }

  /** Records that wait, those of the current call not among them. */
  get recordCount(): number {
    return this.#recordCount;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(record: R): void {
    this.#line(record).waiting.push(record);
    this.#mark(record, true);
  }

  /** The record is wanted no more. */
  withdraw(record: R): void {
    record.done = true;
    if (record.waiting) this.#mark(record, false);
  }

  /** The next call; empty when nothing may go now. */
  take(nowMs: number): Part<R>[] {
    const parts: Part<R>[] = [];
    const left = { recordCount: this.#limits.recordCount, bytes: this.#limits.bytes };
    for (const [key, line] of [...this.#lines]) {
      if (left.recordCount <= 0 || left.bytes <= 0) break;
      if (line.restsUntilMs > nowMs || line.waiting.length === 0) continue;
      const records = this.#cut(line, left);
      if (records.length === 0) continue;
      parts.push({ topic: line.topic, partition: line.partition, records });
      this.#lines.delete(key);
      this.#lines.set(key, line);
    }
    return parts;
  }

  /** When something may go: a time that is past means at once, undefined that nothing waits. */
  nextMs(): number | undefined {
    let next: number | undefined;
    for (const line of this.#lines.values()) {
      if (line.waiting.every((record) => record.done)) line.waiting = [];
      else if (next === undefined || line.restsUntilMs < next) next = line.restsUntilMs;
    }
    return next;
  }

  /** The broker took the part. */
  taken(part: Part<R>): void {
    const line = this.#line(part);
    line.failures = 0;
    line.recordLimit = Math.min(line.recordLimit * 2, this.#limits.recordCount);
  }

  /** What is not done of the part goes to the front of its line, to be taken at once. */
  putBack(part: Part<R>): void {
    const line = this.#line(part);
    const again = part.records.filter((record) => !record.done);
    for (const record of again) this.#mark(record, true);
    line.waiting = [...again, ...line.waiting];
  }

  /** As putBack, and the line rests: 50 ms, then twice as long after each failure, to 1 s. `random` spreads it (0 to 1). */
  putBackToRest(part: Part<R>, nowMs: number, random: number): void {
    this.putBack(part);
    const line = this.#line(part);
    const rest = Math.min(restMs.first * 2 ** line.failures, restMs.longest);
    line.restsUntilMs = nowMs + rest * (0.75 + random / 4);
    line.failures += 1;
  }

  /**
   * The broker found the part's batch too large. It refuses a batch whole, so the line goes on with half as many records a
   * call until the one that is too large stands alone: it is returned, and is not put back.
   */
  tooLarge(part: Part<R>): R | undefined {
    const [first] = part.records;
    if (part.records.length === 1) return first;
    this.putBack(part);
    this.#line(part).recordLimit = Math.floor(part.records.length / 2);
    return undefined;
  }

  /** Every record that waits, out of the queue. */
  drain(): R[] {
    const records = [...this.#lines.values()].flatMap((line) => line.waiting.filter((record) => !record.done));
    for (const record of records) this.#mark(record, false);
    this.#lines.clear();
    this.#lastLine = undefined;
    return records;
  }

  #line({ topic, partition }: { topic: string; partition: number }): Line<R> {
    if (this.#lastLine?.partition !== partition || this.#lastLine.topic !== topic)
      this.#lastLine = this.#lineOf(topic, partition);
    return this.#lastLine;
  }

  #lineOf(topic: string, partition: number): Line<R> {
    const key = `${partition}/${topic}`;
    const existing = this.#lines.get(key);
    if (existing !== undefined) return existing;
    const created = {
      topic,
      partition,
      waiting: [],
      restsUntilMs: Number.NEGATIVE_INFINITY,
      failures: 0,
      recordLimit: this.#limits.recordCount,
    };
    this.#lines.set(key, created);
    return created;
  }

  #cut(line: Line<R>, left: { recordCount: number; bytes: number }): R[] {
    const countLimit = Math.min(left.recordCount, line.recordLimit);
    const bytesLimit = Math.min(left.bytes, this.#limits.partitionBytes);
    const records: R[] = [];
    let bytes = 0;
    let seen = 0;
    for (const record of line.waiting) {
      const full = records.length >= countLimit || bytes + record.bytes > bytesLimit;
      if (!record.done && full && records.length > 0) break;
      seen += 1;
      if (record.done) continue;
      records.push(record);
      bytes += record.bytes;
      this.#mark(record, false);
    }
    line.waiting.splice(0, seen);
    left.recordCount -= records.length;
    left.bytes -= bytes;
    return records;
  }

  #mark(record: R, waiting: boolean): void {
    record.waiting = waiting;
    this.#recordCount += waiting ? 1 : -1;
    this.#bytes += waiting ? record.bytes : -record.bytes;
  }
}
