import type { EndedCall } from "./verdict.ts";

/** So many calls without a refusal show that a host takes our speed. */
const cleanCountWanted = 10;
/** And for so long it must have refused nothing, at a pace somewhat below what it takes: most limits are counted by the second. */
const calmMs = 1_100;
/** A host that has nothing but last attempts to show its health with is asked with one, after a pause that doubles. */
const shortestPauseMs = 2_000;
const longestPauseMs = 16_000;
/** For so long the host is spared for their sake. One that refuses now and then at any pace would never be tried again. */
const sparedMs = 5_000;
/** How long last attempts wait for better times in all; a host that never refuses for long enough is not refusing for our speed. */
const patienceMs = 60_000;

export interface GateView {
  readonly nowMs: number;
  /** Nothing but last attempts waits or is under way. */
  readonly alone: boolean;
  readonly dead: boolean;
}

/**
 * When a token's last attempt may be made. A refusal would fail the token, waiting costs it nothing: so it is made only when its host
 * has refused nothing lately, and no more of them at once than that evidence carries. The wait ends in any case: after a minute one
 * at a time is made, whatever the host answers, until it has ten clean calls again.
 */
export class LastAttempts {
  /** Calls without a refusal since the last one; a host not yet called has refused nothing. */
  #cleanCount = cleanCountWanted;
  #underWay = 0;
  #refusedMs = Number.NEGATIVE_INFINITY;
  #pauseMs = shortestPauseMs;
  #closedSinceMs: number | undefined;
  #waitingSinceMs: number | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  #inVain = false;

  get underWay(): number {
    return this.#underWay;
  }

  /** Whether the host should be spared for their sake. */
  get calm(): boolean {
    return !this.#inVain && (this.#waitingSinceMs !== undefined || this.#underWay > 0);
  }

  started(nowMs: number): void {
    this.#underWay += 1;
    this.#startedMs = nowMs;
  }

  abandoned(): void {
    this.#underWay -= 1;
  }

  ended({ verdict, startedMs, endedMs, lastAttempt }: EndedCall): void {
    if (lastAttempt) this.#underWay -= 1;
    if (verdict === "refused") {
      this.#cleanCount = 0;
      this.#refusedMs = endedMs;
      if (lastAttempt) this.#pauseMs = Math.min(longestPauseMs, this.#pauseMs * 2);
    } else if (startedMs >= this.#refusedMs) {
      this.#cleanCount += 1;
      this.#pauseMs = shortestPauseMs;
    }
  }

  /** None waits. */
  rest(): void {
    this.#waitingSinceMs = undefined;
    this.#inVain = false;
  }

  /** When the next one may be made; Infinity: not before a call ends. */
  nextAtMs({ nowMs, alone, dead }: GateView): number {
    if (dead) return Number.NEGATIVE_INFINITY;
    this.#waitingSinceMs ??= nowMs;
    this.#inVain = nowMs - Math.max(this.#waitingSinceMs, this.#startedMs) > sparedMs;
    const clean = this.#cleanCount >= cleanCountWanted;
    const openAtMs = clean ? Math.max(this.#waitingSinceMs, this.#refusedMs) + calmMs : Number.POSITIVE_INFINITY;
    if (openAtMs <= nowMs) {
      this.#closedSinceMs = undefined;
      return this.#underWay < this.#cleanCount / cleanCountWanted ? openAtMs : Number.POSITIVE_INFINITY;
    }
    this.#closedSinceMs ??= nowMs;
    if (!clean && alone && this.#underWay < this.#cleanCount) return Number.NEGATIVE_INFINITY;
    if (this.#underWay > 0) return openAtMs;
    const patientUntilMs = this.#closedSinceMs + patienceMs;
    const askAtMs = alone && !clean ? this.#refusedMs + this.#pauseMs : Number.POSITIVE_INFINITY;
    return Math.min(openAtMs, patientUntilMs, askAtMs);
  }
}
