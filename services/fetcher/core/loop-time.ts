/** A turn of the event loop counts for at most this much: what is beyond it was our own stall. */
const longestTurnMs = 50;

/**
 * Time as a host may be charged for it: it stands still while our own event loop is blocked. An answer that lay in the socket
 * meanwhile must not be taken for a late one. `turn` is called often while calls are under way.
 */
export class LoopTime {
  #countedMs = 0;
  #turnedAtMs: number;

  constructor(monotonicMs: number) {
    this.#turnedAtMs = monotonicMs;
  }

  turn(monotonicMs: number): void {
    this.#countedMs = this.read(monotonicMs);
    this.#turnedAtMs = monotonicMs;
  }

  /** Milliseconds; only differences mean something. */
  read(monotonicMs: number): number {
    return this.#countedMs + Math.min(monotonicMs - this.#turnedAtMs, longestTurnMs);
  }
}
