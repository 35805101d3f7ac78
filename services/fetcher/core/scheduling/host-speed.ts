import { CallTimes } from "./call-times.ts";
import { LearnedLimit } from "./learned-limit.ts";
import { RecentCount } from "./recent-count.ts";
import { RefusalCause } from "./refusal-cause.ts";
import type { EndedCall } from "./verdict.ts";

/** What may be known of a host before its first call. */
export interface LearnedSpeed {
  readonly concurrency: number | undefined;
  readonly perSecond: number | undefined;
}

export interface SpeedBounds {
  readonly start: number;
  readonly cap: number;
}

const slowestPerSecond = 0.5;
/** A limit that is used less is not what holds its host back. */
const usedShare = 0.75;
const guessedFromCount = 3;
const hangover = 0.9;
/** Tokens whose metadata a host never finds are not hung for our speed. */
const hangingShare = 0.25;

/**
 * How many calls at once and how many a second a host takes. Both are learned apart: 50 a second at 10 ms cannot be said in calls
 * at once, and two at once with answers that take now 50 ms and now 500 ms cannot be said in a rate.
 */
export class HostSpeed {
  readonly #concurrency: LearnedLimit;
  readonly #rate = new LearnedLimit({
    start: Number.POSITIVE_INFINITY,
    floor: slowestPerSecond,
    cap: Number.POSITIVE_INFINITY,
    shrink: 0.15,
  });
  readonly #cause = new RefusalCause();
  readonly #answers = new RecentCount();
  readonly #times = new CallTimes();
  #lastCutMs = Number.NEGATIVE_INFINITY;
  #filledMs = Number.NEGATIVE_INFINITY;
  #firstStartMs: number | undefined;

  constructor(bounds: SpeedBounds, learned: LearnedSpeed) {
    this.#concurrency = new LearnedLimit({ start: bounds.start, floor: 1, cap: bounds.cap, shrink: 0.1 });
    if (learned.concurrency !== undefined) this.#concurrency.adopt(Math.min(bounds.cap, learned.concurrency));
    if (learned.perSecond !== undefined) this.#rate.adopt(learned.perSecond);
  }

  get concurrency(): number {
    return Math.floor(this.#concurrency.value);
  }

  /** Infinity while the host has refused no rate. */
  get perSecond(): number {
    return this.#rate.value;
  }

  get meanCallMs(): number {
    return this.#times.meanMs;
  }

  /** What a queue that is new to this origin may start with; empty while the host has refused nothing. */
  get learned(): LearnedSpeed {
    return {
      concurrency: this.#concurrency.known ? this.#concurrency.value : undefined,
      perSecond: this.#rate.known ? this.#rate.value : undefined,
    };
  }

  /** The owner says that the host takes as many at once. */
  declare(concurrency: number): void {
    this.#concurrency.raise(concurrency);
  }

  /** `inFlight`: calls under way now, this one included. */
  started(inFlight: number, nowMs: number): void {
    this.#firstStartMs ??= nowMs;
    if (inFlight >= usedShare * this.concurrency) this.#filledMs = nowMs;
  }

  /** `mayTry`: whether more than what was refused may be tried now. */
  ended(call: EndedCall, mayTry: boolean): void {
    const windowFull = this.#times.add(call.endedMs - call.startedMs, call.verdict === "answered");
    if (call.verdict === "answered") this.#answered(call, mayTry);
    else if (call.verdict === "refused") this.#refused(call);
    else this.#timedOut(call);
    if (windowFull && this.#times.alarming) this.#ease(call);
  }

  /** Tries nothing more until a call ends that may. */
  retreat(): void {
    this.#concurrency.retreat();
    this.#rate.retreat();
  }

  #answered(call: EndedCall, mayTry: boolean): void {
    const { startedMs, endedMs, inFlight } = call;
    this.#answers.add(endedMs);
    this.#cause.record(inFlight, true);
    const filled = this.#filledMs >= startedMs;
    this.#concurrency.taken({ startedMs, used: filled && !this.#times.stretched, mayTry }, endedMs);
    const reached = this.#answers.perSecond(endedMs) > usedShare * this.#rate.value;
    this.#rate.taken({ startedMs, used: reached, mayTry }, endedMs);
  }

  #refused(call: EndedCall): void {
    const cause = this.#cause.of(call.inFlight, this.#rate.known);
    this.#cause.record(call.inFlight, false);
    // What was started before the last decrease is part of what that was for.
    if (call.startedMs < this.#lastCutMs) return;
    const { value } = this.#concurrency;
    if (cause === "concurrency") this.#cutConcurrency(Math.min(call.inFlight, value), call);
    else if (this.#guessable(call.endedMs)) this.#cutRate(call);
    else this.#cutConcurrency(value / 2, call);
  }

  /** A rate is not made up from next to nothing as long as fewer calls at once are left to be tried. */
  #guessable(nowMs: number): boolean {
    return this.#rate.known || this.concurrency < 2 || this.#answers.total(nowMs) >= guessedFromCount;
  }

  #cutRate({ startedMs, endedMs }: EndedCall): void {
    const shrinks = this.#rate.refused(startedMs);
    const seen = this.#answers.total(endedMs);
    // It took more than this within the last second: what it refuses now is still for that.
    const current = this.#rate.value;
    if (!shrinks || current <= hangover * (seen - 1)) return;
    const level = Math.min(current, Math.max(seen, this.#rate.takenPerSecond(endedMs) ?? seen + 1));
    const young = endedMs - (this.#firstStartMs ?? endedMs) < 1_000;
    this.#lastCutMs = endedMs;
    this.#rate.cut(level * 0.97, { nowMs: endedMs, perSecond: level, sure: !young });
  }

  #timedOut({ startedMs, endedMs }: EndedCall): void {
    if (this.#concurrency.refused(startedMs, hangingShare)) this.#cutConcurrency(this.#concurrency.value / 1.8, { endedMs });
  }

  #ease({ startedMs, endedMs }: EndedCall): void {
    if (this.#concurrency.refused(startedMs)) this.#cutConcurrency(this.#concurrency.value * 0.9, { endedMs });
  }

  #cutConcurrency(level: number, { endedMs }: { endedMs: number }): void {
    const perSecond = (level / this.#times.meanMs) * 1_000;
    this.#lastCutMs = endedMs;
    this.#concurrency.cut(level, { nowMs: endedMs, perSecond, sure: true });
  }
}
