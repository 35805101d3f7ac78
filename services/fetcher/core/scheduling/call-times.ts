const windowCount = 8;
/** A host that is slower than this under our load is near the 3 s at which its tokens would fail. */
const alarmingMs = 1_000;
const assumedMs = 100;

/** How long a host's calls take, in windows of a few calls, against the quickest window. */
export class CallTimes {
  #meanMs = assumedMs;
  #answerMs = assumedMs;
  #baseMs = Number.POSITIVE_INFINITY;
  #sumMs = 0;
  #count = 0;

  /** Of the last few calls. */
  get meanMs(): number {
    return this.#meanMs;
  }

  /** More calls at once would only wait for each other, or for a host that is near the deadline already. */
  get stretched(): boolean {
    return this.#answerMs > alarmingMs || this.#answerMs > 2 * this.#baseMs + 20;
  }

  /** Time to have fewer at once. */
  get alarming(): boolean {
    return this.#answerMs > alarmingMs && this.#answerMs > 2 * this.#baseMs;
  }

  /** A call that hung until its deadline says nothing of how quickly the others are answered. True when a window is complete. */
  add(durationMs: number, answered: boolean): boolean {
    this.#meanMs += (durationMs - this.#meanMs) / 8;
    if (!answered) return false;
    this.#answerMs += (durationMs - this.#answerMs) / 8;
    this.#sumMs += durationMs;
    this.#count += 1;
    if (this.#count < windowCount) return false;
    // A host may become slower for good; the measure follows in some thousand calls.
    this.#baseMs = Math.min(this.#baseMs * 1.001, this.#sumMs / this.#count);
    this.#sumMs = 0;
    this.#count = 0;
    return true;
  }
}
