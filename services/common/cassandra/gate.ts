import { CassandraError } from "./errors.ts";

interface Waiting {
  readonly sinceMs: number;
  readonly enter: () => void;
  readonly refuse: (error: CassandraError) => void;
}

/**
 * At most `limit` requests are on their way, the others wait in order of arrival: a burst neither floods the node nor exceeds
 * what the driver allows on one connection. With `maxWaitMs` one that waited longer is refused when its turn comes; turns come
 * at the latest when the requests before it have timed out, so nobody waits for ever.
 */
export class Gate {
  readonly #waiting = new Set<Waiting>();
  readonly #limit: number;
  readonly #maxWaitMs: number;
  readonly #monotonicMs: () => number;
  #inside = 0;

  constructor(options: { limit: number; maxWaitMs: number; monotonicMs: () => number }) {
    this.#limit = options.limit;
    this.#maxWaitMs = options.maxWaitMs;
    this.#monotonicMs = options.monotonicMs;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#inside < this.#limit) this.#inside += 1;
    else await this.#turn();
    try {
      return await work();
    } finally {
      this.#passOn();
    }
  }

  #turn(): Promise<void> {
    return new Promise((enter, refuse) => this.#waiting.add({ sinceMs: this.#monotonicMs(), enter, refuse }));
  }

  /** The place goes to the next in line without becoming free, so that nobody overtakes. */
  #passOn(): void {
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      const waitedMs = this.#monotonicMs() - next.sinceMs;
      if (waitedMs <= this.#maxWaitMs) {
        next.enter();
        return;
      }
      next.refuse(new CassandraError("unavailable", `waited ${Math.round(waitedMs)} ms behind ${this.#limit} other requests`));
    }
    this.#inside -= 1;
  }
}
