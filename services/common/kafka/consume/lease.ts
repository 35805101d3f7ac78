/**
 * The right to start effects that Cassandra cannot fence: a member that the broker may have given up must not act
 * (README, Exactness, ownership). Counted from the moment the last answered heartbeat was *sent*: a process that was stopped finds
 * the answer in its socket when it wakes, and that answer is as old as its stop.
 */
export class Lease {
  readonly #termMs: number;
  #sentAtMs = Number.NEGATIVE_INFINITY;

  /**
   * The term leaves room for one request, so that what starts at its very end still reaches its server within the session. Throws
   * when the session is shorter than three requests: one lost heartbeat would end the lease.
   */
  constructor({ sessionTimeoutMs, requestTimeoutMs }: { readonly sessionTimeoutMs: number; readonly requestTimeoutMs: number }) {
    if (sessionTimeoutMs < 3 * requestTimeoutMs) {
      throw new Error(`a session of ${sessionTimeoutMs} ms is shorter than three requests of ${requestTimeoutMs} ms`);
    }
    this.#termMs = sessionTimeoutMs - requestTimeoutMs;
  }

  /** A heartbeat, or the join, that was sent at this monotonic instant got a good answer. */
  renew(sentAtMs: number): void {
    this.#sentAtMs = Math.max(this.#sentAtMs, sentAtMs);
  }

  valid(monotonicMs: number): boolean {
    return monotonicMs - this.#sentAtMs < this.#termMs;
  }

  /** Milliseconds since the last good heartbeat was sent; infinite before the first. */
  ageMs(monotonicMs: number): number {
    return monotonicMs - this.#sentAtMs;
  }
}
