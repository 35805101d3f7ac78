/**
 * Start times at a declared rate, spread evenly (GCRA). In no second, by our clock, do more starts fall than declared: the 2 % pay
 * for the catching up, and for a network that delivers two requests closer together than they were sent.
 */
export class RateCeiling {
  #nextAtMs = Number.NEGATIVE_INFINITY;

  /** When the next start may be; in the past or now means at once. */
  nextAtMs(): number {
    return this.#nextAtMs - catchUpMs;
  }

  start(perSecond: number, nowMs: number): void {
    this.#nextAtMs = Math.max(this.#nextAtMs, nowMs) + (1_000 * margin) / perSecond;
  }
}

const margin = 1.02;
/** What a timer that fires late may be caught up; without it no rate above a few hundred a second could be reached. */
const catchUpMs = 10;
