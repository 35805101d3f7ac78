export interface LimitOptions {
  /** Infinity: nothing is known, nothing is limited. */
  readonly start: number;
  readonly floor: number;
  readonly cap: number;
  /** What is taken off the level that was refused, at the most: less when one call in a hundred is refused, or fewer. */
  readonly shrink: number;
}

/** How long a limit stays below the level that was refused before it tries that level again, in time of use. */
const shortestMs = 2_500;
const longestMs = 10_000;
/** A try costs a refusal: at most one in so many calls, as far as the longest wait allows. */
const callsPerTry = 24;
/** A rate of a few a second is not measured in less. */
const measuredMs = 2_000;
/** An unused limit learns nothing: a longer pause between two calls counts only so much. */
const pauseMs = 5_000;
const leastShrink = 0.04;
/** Of what is taken off, what is taken off again for a retreat. */
const retreatShare = 0.42;
/** What a taken call adds to a limit that is just above a level that was refused; elsewhere it adds 1. */
const carefulStep = 0.25;
const carefulShare = 1.5;
const carefulCount = 4;
/** And to one that was guessed from too little. */
const boldStep = 3;

/**
 * A limit that a host does not tell: what it takes at once, or in a second. Grows by one with each call until the first refusal, so
 * that it doubles in a round trip (or in a second). Then it goes back below the level that was refused, nears it again ever more
 * slowly (a cubic curve, as in TCP CUBIC and in the adaptive retries of the AWS SDKs), tries a little more, and when that is taken
 * too, grows as at first. Only time of use counts.
 */
export class LearnedLimit {
  readonly #options: LimitOptions;
  #value: number;
  /** The level that was refused last. */
  #knee: number | undefined;
  /** Whether more than the knee was taken since. */
  #beyond = true;
  #sure = true;
  #shrink: number;
  #usedMs = 0;
  #periodMs = shortestMs;
  /** How long a little more than that is tried: a host that counts by the second must have had the time to refuse it. */
  #trialMs = shortestMs;
  #lastCutMs = Number.NEGATIVE_INFINITY;
  #lastUseMs = Number.NEGATIVE_INFINITY;
  #takenCount = 0;
  /** A level that is surely taken, while nothing may be tried. */
  #retreat = Number.POSITIVE_INFINITY;
  #before = { value: 0, atMs: Number.NEGATIVE_INFINITY };
  #mark = { value: 0, atMs: Number.NEGATIVE_INFINITY };

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#value = options.start;
    this.#shrink = options.shrink;
  }

  get value(): number {
    return Math.min(this.#value, this.#retreat);
  }

  /** The value a second ago, or two. */
  get valueBefore(): number {
    return this.#before.value;
  }

  /** Whether a refusal was ever learned from. */
  get known(): boolean {
    return this.#lastCutMs > Number.NEGATIVE_INFINITY;
  }

  /** Whether more was taken than was ever refused. */
  get growing(): boolean {
    return this.#beyond && this.#value < this.#options.cap;
  }

  /** Whether it is at a level that the host may well refuse. */
  get trying(): boolean {
    return this.#beyond || this.#usedMs >= this.#periodMs;
  }

  /** An owner's word for what the host takes; heard only until the host itself has spoken. */
  raise(level: number): void {
    if (!this.known) this.#value = Math.min(this.#options.cap, Math.max(this.#value, level));
  }

  /** Takes over what was learned elsewhere. */
  adopt(level: number): void {
    this.#value = level;
    this.#knee = level;
    this.#beyond = false;
    this.#usedMs = this.#periodMs / 2;
  }

  /** A call that was started at `startedMs` was answered. `used`: the limit was what kept more calls from being started. */
  taken(call: { startedMs: number; used: boolean; mayTry: boolean }, nowMs: number): void {
    const passedMs = Math.min(pauseMs, nowMs - this.#lastUseMs);
    this.#lastUseMs = nowMs;
    if (call.startedMs >= this.#lastCutMs) this.#takenCount += 1;
    if (call.mayTry) this.#retreat = Number.POSITIVE_INFINITY;
    if (!call.used || !call.mayTry || this.#value === Number.POSITIVE_INFINITY) return;
    if (nowMs - this.#mark.atMs >= 1_000) {
      this.#before = this.#mark;
      this.#mark = { value: this.#value, atMs: nowMs };
    }
    if (this.#beyond) this.#value = Math.min(this.#options.cap, this.#value + this.#step());
    else this.#climb(passedMs);
  }

  /** Back to a level that is surely taken, until trying is allowed again. */
  retreat(): void {
    if (this.#retreat < Number.POSITIVE_INFINITY || this.#value === Number.POSITIVE_INFINITY) return;
    const { floor } = this.#options;
    const back = 1 - this.#shrink * retreatShare;
    this.#retreat = this.#beyond
      ? Math.max(floor, (this.valueBefore || this.#value) * back)
      : this.#at(Math.min(this.#usedMs, this.#periodMs / 4));
  }

  /** What was taken since the last cut; undefined while that was too short a time to tell. */
  takenPerSecond(nowMs: number): number | undefined {
    const passedMs = nowMs - this.#lastCutMs;
    return passedMs < measuredMs || !this.known ? undefined : (this.#takenCount / passedMs) * 1_000;
  }

  /** The level that was refused was not refused for itself. */
  forget(): void {
    this.#beyond = true;
    this.#sure = true;
    if (this.#knee !== undefined) this.#knee = 0;
    if (this.#options.start < Number.POSITIVE_INFINITY) this.#value = Math.max(this.#value, this.#options.start);
  }

  /** Shrinks below `level`, which was refused. `perSecond`: calls at that level. `sure`: false when the level is only a guess. */
  cut(level: number, call: { nowMs: number; perSecond: number; sure: boolean; share: number }): void {
    const { floor, cap } = this.#options;
    this.#shrink = Math.min(this.#options.shrink, leastShrink + 4 * call.share);
    const knee = Math.min(cap, Math.max(floor, level));
    const confirmed = this.#knee !== undefined && Math.abs(knee / this.#knee - 1) < 0.25;
    const triesMs = Math.min(longestMs, (callsPerTry / Math.max(call.perSecond, 0.1)) * 1_000);
    this.#trialMs = Math.max(triesMs, shortestMs);
    this.#periodMs = Math.max(triesMs, confirmed ? Math.min(longestMs, this.#periodMs * 1.5) : shortestMs);
    this.#knee = knee;
    this.#sure = call.sure;
    this.#beyond = !call.sure;
    this.#value = Math.max(floor, knee * (1 - this.#shrink));
    this.#usedMs = 0;
    this.#retreat = Number.POSITIVE_INFINITY;
    this.#lastCutMs = call.nowMs;
    this.#lastUseMs = call.nowMs;
    this.#takenCount = 0;
    this.#before = { value: 0, atMs: call.nowMs };
    this.#mark = this.#before;
  }

  #step(): number {
    if (!this.#sure) return boldStep;
    const knee = this.#knee ?? 0;
    return knee > 0 && this.#value < Math.max(carefulShare * knee, knee + carefulCount) ? carefulStep : 1;
  }

  #climb(passedMs: number): void {
    this.#usedMs += passedMs;
    this.#value = this.#at(this.#usedMs);
    this.#beyond = this.#usedMs >= this.#periodMs + this.#trialMs;
  }

  /** The level after so long a time of use. */
  #at(usedMs: number): number {
    const { floor, cap } = this.#options;
    const knee = this.#knee ?? this.#value;
    const lacking = Math.max(0, 1 - usedMs / this.#periodMs);
    const trial = Math.min(1, Math.max(0, usedMs - this.#periodMs) / this.#trialMs);
    return Math.min(cap, Math.max(floor, knee * (1 - this.#shrink * (lacking ** 3 - trial ** 3))));
  }
}
