/** What a partition's window knows of an offset that is added: the caller skips all but the new ones. */
export type Addition = "new" | "in_flight" | "finished";

/**
 * The records of one partition that were taken and are not finished. They finish in any order; what may be committed is the
 * low-water mark: the offset below which all are finished. Offsets without a record (compaction, markers) count as finished.
 */
export class PartitionWindow {
  /** Unfinished offsets, ascending because they are added so, with the bytes handed out for them; 0 while they are held. */
  readonly #unfinished = new Map<number, number>();
  #position: number;
  #committed: number;

  /** `start`: where reading begins; `committed`: what the group has committed. */
  constructor(start: number, committed: number) {
    this.#position = start;
    this.#committed = committed;
  }

  /** The offset after the last one that was added or passed. */
  get position(): number {
    return this.#position;
  }

  get lowWaterMark(): number {
    const [lowest] = this.#unfinished.keys();
    return lowest ?? this.#position;
  }

  add(offset: number): Addition {
    if (offset < this.#position) return this.#unfinished.has(offset) ? "in_flight" : "finished";
    this.#unfinished.set(offset, 0);
    this.#position = offset + 1;
    return "new";
  }

  /** No record is left below this offset that was not added. */
  pass(offset: number): void {
    this.#position = Math.max(this.#position, offset);
  }

  /** False when the record was finished meanwhile: a copy of it was under way since before the partition came back. */
  handOut(offset: number, bytes: number): boolean {
    if (!this.#unfinished.has(offset)) return false;
    this.#unfinished.set(offset, bytes);
    return true;
  }

  /** The bytes that were handed out for it, 0 for a held one; undefined when it is not in the window (any more). */
  finish(offset: number): number | undefined {
    const bytes = this.#unfinished.get(offset);
    this.#unfinished.delete(offset);
    return bytes;
  }

  /** The bytes of every record that is handed out and not finished. */
  handedOut(): number[] {
    return [...this.#unfinished.values()].filter((bytes) => bytes > 0);
  }

  /** The low-water mark when it is above what is committed: a commit never goes back. */
  get toCommit(): number | undefined {
    const mark = this.lowWaterMark;
    return mark > this.#committed ? mark : undefined;
  }

  /** We commit nothing above the low-water mark: then another member has, who had the partition meanwhile. */
  overtakenBy(committed: number): boolean {
    return committed > this.lowWaterMark;
  }

  /** The group has this offset committed, by us or by whoever had the partition meanwhile. */
  noteCommitted(offset: number): void {
    this.#committed = offset;
  }
}

/** Handed out and unfinished records of the process, in records and bytes. */
export class Budget {
  readonly #limit: { readonly records: number; readonly bytes: number };
  #records = 0;
  #bytes = 0;

  constructor(limit: { readonly records: number; readonly bytes: number }) {
    this.#limit = limit;
  }

  get records(): number {
    return this.#records;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(bytes: number): void {
    this.#records += 1;
    this.#bytes += bytes;
  }

  give(bytes: number): void {
    this.#records -= 1;
    this.#bytes -= bytes;
  }

  get full(): boolean {
    return this.#records >= this.#limit.records || this.#bytes >= this.#limit.bytes;
  }

  /** Well below full: partitions are not paused and resumed for every record. */
  get roomy(): boolean {
    return this.#records <= 0.8 * this.#limit.records && this.#bytes <= 0.8 * this.#limit.bytes;
  }
}
