/** A queue with many hanging calls would pay for ever; this much debt, a slot for a minute, keeps it behind the others long enough. */
const mostOwedMs = 60_000;

/** What a queue may use of the process's slots, in slot-milliseconds: deficit round robin. */
export class SlotAccount {
  #creditMs = 0;
  #count = 0;
  #startsMs = 0;
  #prepaidMs = 0;

  /** A call is paid for by an estimate. */
  start(prepaidMs: number, nowMs: number): void {
    this.#creditMs -= prepaidMs;
    this.#prepaidMs += prepaidMs;
    this.#startsMs += nowMs;
    this.#count += 1;
  }

  /** The estimate is corrected. */
  finish({ startedMs, prepaidMs }: { startedMs: number; prepaidMs: number }, nowMs: number): void {
    this.#creditMs -= nowMs - startedMs - prepaidMs;
    this.#prepaidMs -= prepaidMs;
    this.#startsMs -= startedMs;
    this.#count -= 1;
  }

  /** Calls that take longer than was paid for are charged while they run. */
  creditMs(nowMs: number): number {
    return this.#creditMs - this.#overdueMs(nowMs);
  }

  grant(grantedMs: number, nowMs: number): void {
    const leastMs = this.#overdueMs(nowMs) - mostOwedMs;
    this.#creditMs = Math.max(this.#creditMs, leastMs) + grantedMs;
  }

  /** An idle queue keeps neither credit nor debt. */
  reset(): void {
    this.#creditMs = 0;
    if (this.#count > 0) return;
    // What the sums lost to rounding would stay for ever.
    this.#startsMs = 0;
    this.#prepaidMs = 0;
  }

  #overdueMs(nowMs: number): number {
    return Math.max(0, this.#count * nowMs - this.#startsMs - this.#prepaidMs);
  }
}
