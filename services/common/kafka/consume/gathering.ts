/** What a fetch brought. */
export interface Fetched {
  /** Of a monotonic clock. */
  readonly answeredAtMs: number;
  readonly recordCount: number;
  /** Partitions that brought records. */
  readonly partitionCount: number;
  /** A partition held more than its share of the answer. */
  readonly moreIsThere: boolean;
}

/** With what a fetch is asked: the broker answers when this much is there, or after this time with what is. */
export interface Patience {
  readonly minBytes: number;
  readonly maxWaitMs: number;
}

/** What one fetch brings at most, of a partition and altogether. */
export interface FetchLimits {
  readonly partitionBytes: number;
  readonly answerBytes: number;
}

/** Who is brought fewer at once has time to spare: a token alone, or a small refresh, never waits for others. */
const leastRecordCount = 64;
/** So much of what a busy stretch has lasted may be waited for the next records: its last ones come by as much later. */
const shareOfStretch = 0.1;
const longestWaitMs = 100;

/** Decides how patient the next fetch is. A busy consumer's batches grow, and each costs the same requests; an idle one never waits. */
export class Gathering {
  readonly #limits: FetchLimits;
  #last: Fetched | undefined;
  #busySinceMs = 0;

  constructor(limits: FetchLimits) {
    this.#limits = limits;
  }

  /** undefined: take the first record that comes. */
  patience(nowMs: number): Patience | undefined {
    const last = this.#last;
    if (last === undefined || !isBusy(last) || last.moreIsThere) return undefined;
    const maxWaitMs = Math.min(Math.floor((nowMs - this.#busySinceMs) * shareOfStretch), longestWaitMs);
    const { partitionBytes, answerBytes } = this.#limits;
    return maxWaitMs < 1 ? undefined : { minBytes: Math.min(last.partitionCount * partitionBytes, answerBytes), maxWaitMs };
  }

  /** A stretch lasts as long as every fetch brings many. */
  note(fetched: Fetched): void {
    if (this.#last === undefined || !isBusy(this.#last)) this.#busySinceMs = fetched.answeredAtMs;
    this.#last = fetched;
  }
}

const isBusy = ({ recordCount }: Fetched): boolean => recordCount >= leastRecordCount;
