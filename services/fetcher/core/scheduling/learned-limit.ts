import { bitCount } from "./bit-count.ts";

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
/** Below the level that was refused, a greater share of refusals, and more than one, is no host's own now and then. */
const toleratedShare = 0.1;
/** And so are so many among the last calls. */
const burstCount = 4;
const lookedAt = (1 << 10) - 1;
const leastShrink = 0.04;
/** What a taken call adds to a limit that looks for a new level; before the first refusal it adds 1. */
const carefulStep = 0.25;
/** And to one that was guessed from too little. */
const boldStep = 3;

/**
 * A limit that a host does not tell: what it takes at once, or in a second. Grows by one with each call until the first refusal, so
 * that it doubles in a round trip (or in a second). Then it goes back below the level that was refused, nears it again ever more
 * slowly (a cubic curve, as in TCP CUBIC and in the adaptive retries of the AWS SDKs), stays there, tries a little more, and when
 * that is taken too, grows as at first. Only time of use counts.
 *
 * A refusal at a level below the one that was refused before says that the host refuses now and then whatever we do, as long as it
 * is a rare one; what is rare is measured there, and expected above.
 */
export class LearnedLimit {
  readonly #options: LimitOptions;
  #value: number;
  /** The level that was refused last; undefined while none is known. */
  #knee: number | undefined;
  /** The last calls since the last cut, the latest in the lowest bit: 1 for a refusal. */
  #history = 0;
  #step = 1;
  #shrink: number;
  #usedMs = 0;
  #periodMs = shortestMs;
  #lastCutMs = Number.NEGATIVE_INFINITY;
  #lastUseMs = Number.NEGATIVE_INFINITY;
  #below = { taken: 0, refused: 0 };
  #above = { taken: 0, refused: 0 };

  constructor(options: LimitOptions) {
    this.#options = options;
    this.#value = options.start;
    this.#shrink = options.shrink;
  }

  get value(): number {
    return this.#value;
  }

  /** Whether a refusal was ever learned from. */
  get known(): boolean {
    return this.#lastCutMs > Number.NEGATIVE_INFINITY;
  }

  /** An owner's word for what the host takes; heard only until the host itself has spoken. */
  raise(level: number): void {
    if (!this.known) this.#value = Math.min(this.#options.cap, Math.max(this.#value, level));
  }

  /** Takes over what was learned elsewhere. */
  adopt(level: number): void {
    this.#value = level;
    this.#knee = level;
    this.#usedMs = this.#periodMs / 2;
  }

  /** A call that was started at `startedMs` was answered. `used`: the limit was what kept more calls from being started. */
  taken(call: { startedMs: number; used: boolean; mayTry: boolean }, nowMs: number): void {
    const passedMs = Math.min(pauseMs, nowMs - this.#lastUseMs);
    this.#lastUseMs = nowMs;
    if (call.startedMs >= this.#lastCutMs) {
      this.#zone().taken += 1;
      this.#history = (this.#history << 1) & lookedAt;
    }
    if (!call.used || this.#value === Number.POSITIVE_INFINITY) return;
    if (this.#knee === undefined) {
      if (call.mayTry) this.#value = Math.min(this.#options.cap, this.#value + this.#step);
      return;
    }
    this.#usedMs += passedMs;
    if (!call.mayTry) this.retreat();
    else this.#climb(this.#knee);
  }

  /** Back to a level that is surely taken, until trying is allowed again. */
  retreat(): void {
    if (this.#value === Number.POSITIVE_INFINITY) return;
    this.#knee ??= this.#value;
    this.#usedMs = Math.min(this.#usedMs, this.#periodMs / 4);
    this.#climb(this.#knee);
  }

  /** Whether a refusal should shrink the limit. All that was started before the last cut belongs to that one. */
  refused(startedMs: number, tolerated = toleratedShare): boolean {
    if (startedMs < this.#lastCutMs) return false;
    const zone = this.#zone();
    zone.refused += 1;
    if (this.#knee === undefined) return true;
    this.#history = ((this.#history << 1) | 1) & lookedAt;
    const { taken, refused } = this.#below;
    if (zone === this.#below) return bitCount(this.#history) >= burstCount || refused > 1 + tolerated * (taken + refused);
    const usual = refused === 0 ? 0 : refused / (taken + refused);
    return zone.refused > 1.5 * usual * (zone.taken + zone.refused) + (usual > 0 ? 1 : 0);
  }

  /** What was taken since the last cut; undefined while that was too short a time to tell. */
  takenPerSecond(nowMs: number): number | undefined {
    const passedMs = nowMs - this.#lastCutMs;
    return passedMs < measuredMs || !this.known ? undefined : ((this.#below.taken + this.#above.taken) / passedMs) * 1_000;
  }

  /** Shrinks below `level`, which was refused. `perSecond`: calls at that level. `sure`: false when the level is only a guess. */
  cut(level: number, { nowMs, perSecond, sure }: { nowMs: number; perSecond: number; sure: boolean }): void {
    const { floor, cap } = this.#options;
    this.#shrink = Math.min(this.#options.shrink, leastShrink + 4 * this.#refusedShare());
    const knee = Math.min(cap, Math.max(floor, level));
    const confirmed = this.#knee !== undefined && Math.abs(knee / this.#knee - 1) < 0.25;
    const triesMs = Math.min(longestMs, (callsPerTry / Math.max(perSecond, 0.1)) * 1_000);
    this.#periodMs = Math.max(triesMs, confirmed ? Math.min(longestMs, this.#periodMs * 1.5) : shortestMs);
    this.#knee = sure ? knee : undefined;
    this.#step = sure ? carefulStep : boldStep;
    this.#value = Math.max(floor, knee * (1 - this.#shrink));
    this.#usedMs = 0;
    this.#lastCutMs = nowMs;
    this.#lastUseMs = nowMs;
    this.#history = 0;
    this.#below = { taken: 0, refused: 0 };
    this.#above = { taken: 0, refused: 0 };
  }

  #refusedShare(): number {
    const refused = this.#below.refused + this.#above.refused;
    return refused / Math.max(1, refused + this.#below.taken + this.#above.taken);
  }

  #zone(): { taken: number; refused: number } {
    return this.#knee === undefined || this.#usedMs >= this.#periodMs ? this.#above : this.#below;
  }

  #climb(knee: number): void {
    const { floor, cap } = this.#options;
    const progress = this.#usedMs / this.#periodMs;
    this.#value = Math.min(cap, Math.max(floor, knee * (1 - this.#shrink * (1 - progress) ** 3)));
    if (progress >= 2) this.#knee = undefined;
  }
}
