import type { Clock } from "../../common/clock.ts";

/**
 * A connection costs as much as six calls. While our own loop is behind, the answers that wait in it free more connections in a
 * turn than this; while it is not, a turn takes a fraction of a millisecond, and a hundred connections are there soon all the same.
 */
const perTurn = 8;
/** By then the host's other calls are slow ones that hold what there is. A host may not wait longer because of what others cost us. */
const patienceMs = 100;

/** Who may open a connection when: a few in a turn of the event loop, the longest waiting first; after a while everybody. */
export class Openings {
  readonly #clock: Clock;
  /** How each opens its connection, and since when it waits, in that order. */
  readonly #waiting = new Map<() => void, number>();
  #leftInTurn = perTurn;
  #turning = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `open` now or in a later turn, once. */
  ask(open: () => void): void {
    this.#endTurnLater();
    if (this.#leftInTurn <= 0 || this.#waiting.size > 0) this.#waiting.set(open, this.#clock.monotonicMs());
    else this.#grant(open);
  }

  /** It has got a connection that became free. */
  giveUp(open: () => void): void {
    this.#waiting.delete(open);
  }

  #grant(open: () => void): void {
    this.#leftInTurn -= 1;
    open();
  }

  #endTurnLater(): void {
    if (this.#turning) return;
    this.#turning = true;
    // After the poll phase: what the answers of this turn have freed is in use again.
    setImmediate(() => this.#endTurn());
  }

  #endTurn(): void {
    this.#turning = false;
    this.#leftInTurn = perTurn;
    const overdueMs = this.#clock.monotonicMs() - patienceMs;
    for (const [open, sinceMs] of this.#waiting) {
      if (this.#leftInTurn <= 0 && sinceMs > overdueMs) break;
      this.#waiting.delete(open);
      this.#grant(open);
    }
    if (this.#leftInTurn < perTurn || this.#waiting.size > 0) this.#endTurnLater();
  }
}
