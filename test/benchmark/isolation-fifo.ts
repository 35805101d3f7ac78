/** A token of the naive loop: when it was queued, how long its call takes, and whether it is of the project that is watched. */
interface Queued {
  readonly atMs: number;
  readonly callMs: number;
}

export interface FifoLoad {
  /** Calls under way at once, for everybody. */
  readonly concurrency: number;
  /** Queued at the beginning, all at once. */
  readonly hangingTokens: number;
  readonly hangMs: number;
  /** The healthy project's: so many together, again and again. */
  readonly batchTokens: number;
  readonly everyMs: number;
  readonly batches: number;
  readonly callMs: number;
}

/**
 * How long the healthy project's tokens wait for their outcome where the first that came is the first that is called: simulated,
 * since the real thing would take hours. Nothing costs any time but the calls.
 */
export function fifoWaitsMs(load: FifoLoad): number[] {
  const places = new Places(load.concurrency);
  const call = ({ atMs, callMs }: Queued): number => places.take(atMs, callMs) - atMs;
  for (let token = 0; token < load.hangingTokens; token++) call({ atMs: 0, callMs: load.hangMs });
  const waits: number[] = [];
  for (let batch = 0; batch < load.batches; batch++) {
    const atMs = batch * load.everyMs;
    for (let token = 0; token < load.batchTokens; token++) waits.push(call({ atMs, callMs: load.callMs }));
  }
  return waits;
}

/** Places for calls, by when they are free next: a binary heap. */
class Places {
  readonly #freeAtMs: number[];

  constructor(count: number) {
    this.#freeAtMs = new Array<number>(count).fill(0);
  }

  /** Takes the place that is free first, from then or from `atMs`; gives the instant at which the call ends. */
  take(atMs: number, callMs: number): number {
    const endMs = Math.max(atMs, this.#at(0)) + callMs;
    this.#freeAtMs[0] = endMs;
    this.#sink();
    return endMs;
  }

  #at(index: number): number {
    return this.#freeAtMs[index] ?? Number.POSITIVE_INFINITY;
  }

  #sink(): void {
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const child = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
      if (this.#at(child) >= this.#at(index)) return;
      [this.#freeAtMs[index], this.#freeAtMs[child]] = [this.#at(child), this.#at(index)];
      index = child;
    }
  }
}
