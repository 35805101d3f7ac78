import { CallShare } from "./call-share.ts";
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
/** A share of fewer calls a second tells nothing. */
const comparedPerSecond = 30;
/** What a host refused lately, it may still refuse for. */
const settledMs = 1_000;
/** An answer that took longer under our load is near the 3 s at which its token would fail. */
const slowMs = 1_000;
const assumedCallMs = 100;

/** Calls that queue at the host are slow at half the pace too: slowness is its own only when a call that is alone is slow. */
const tolerated = {
  refusals: { trying: 0, below: 0.1, own: 0.3, comparable: 0.35, calls: 20 },
  timeOuts: { trying: 0.2, below: 0.25, own: 0.5, comparable: 0.5, calls: 20 },
  slowAnswers: { trying: 0.25, below: 0.25, own: 1, comparable: 1, calls: Number.POSITIVE_INFINITY },
} as const;

interface Paces {
  readonly perSecond: number;
  readonly atOnce: number;
}

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
  readonly #calls = new RecentCount();
  readonly #refusals = new CallShare(tolerated.refusals);
  readonly #timeOuts = new CallShare(tolerated.timeOuts);
  readonly #slowAnswers = new CallShare(tolerated.slowAnswers);
  #meanCallMs = assumedCallMs;
  #lastCutMs = Number.NEGATIVE_INFINITY;
  #filledMs = Number.NEGATIVE_INFINITY;
  #firstStartMs: number | undefined;

  constructor(bounds: SpeedBounds, learned: LearnedSpeed) {
    this.#concurrency = new LearnedLimit({
      start: bounds.start,
      floor: 1,
      cap: bounds.cap,
      shrink: 0.1,
    });
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

  /** Whether more is taken than ever, so that nothing is known yet of where it ends. */
  get growing(): boolean {
    return this.#concurrency.growing && (!this.#rate.known || this.#rate.growing);
  }

  get meanCallMs(): number {
    return this.#meanCallMs;
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
    const { verdict, startedMs, endedMs, inFlight } = call;
    this.#meanCallMs += (endedMs - startedMs - this.#meanCallMs) / 8;
    this.#calls.add(endedMs);
    if (verdict === "answered") this.#answers.add(endedMs);
    const filled = this.#filledMs >= startedMs;
    const reached = this.#answers.perSecond(endedMs) > usedShare * this.#rate.value;
    const trying = (filled && this.#concurrency.trying) || (this.#rate.known && this.#rate.trying);
    this.#judge(call, trying);
    if (verdict !== "timed_out") this.#cause.record(inFlight, verdict === "answered");
    if (verdict !== "answered") return;
    this.#concurrency.taken({ startedMs, used: filled, mayTry }, endedMs);
    this.#rate.taken({ startedMs, used: reached, mayTry }, endedMs);
  }

  /** Tries nothing more until a call ends that may. */
  retreat(): void {
    this.#concurrency.retreat();
    this.#rate.retreat();
  }

  /** Cuts what is too much. What was started before the last cut is part of what that was for. */
  #judge(call: EndedCall, trying: boolean): void {
    const { verdict, startedMs, endedMs } = call;
    const slow = endedMs - startedMs > slowMs;
    this.#refusals.count(verdict === "refused");
    this.#timeOuts.count(verdict === "timed_out");
    this.#slowAnswers.count(slow);
    if (startedMs < this.#lastCutMs) return;
    const paces = this.#paces(call);
    const settled = !trying;
    const recovered = settled && startedMs >= this.#lastCutMs + settledMs;
    const slowest = recovered && this.#rate.value <= 2 * slowestPerSecond;
    const alone = this.concurrency === 1;
    const forNothing = [
      this.#refusals.add(verdict === "refused", { settled: recovered, least: slowest, pace: paces.perSecond }),
      this.#timeOuts.add(verdict === "timed_out", { settled, least: alone, pace: paces.atOnce }),
      this.#slowAnswers.add(slow, { settled, least: alone, pace: paces.atOnce }),
    ];
    if (forNothing.includes(true)) this.#forget();
    if (verdict === "refused") this.#refused(call, trying);
    else if (verdict === "timed_out" && this.#timeOuts.excessive(trying))
      this.#cutConcurrency(this.#concurrency.value / 1.8, call);
    else if (slow && this.#slowAnswers.excessive(trying)) this.#cutConcurrency(this.#concurrency.value / 1.8, call);
  }

  /** What is asked of the host. */
  #paces({ endedMs }: EndedCall): Paces {
    return { perSecond: this.#calls.total(endedMs), atOnce: this.#concurrency.value };
  }

  #refused(call: EndedCall, trying: boolean): void {
    const cause = this.#cause.of(call.inFlight, this.#rate.known);
    if (!this.#refusals.excessive(trying || cause === "concurrency")) return;
    const { value } = this.#concurrency;
    if (cause === "concurrency") this.#cutConcurrency(Math.min(call.inFlight, value), call);
    else if (this.#guessable(call.endedMs)) this.#cutRate(call);
    else this.#cutConcurrency(value / 2, call);
  }

  /** A rate is not made up from next to nothing as long as fewer calls at once are left to be tried. */
  #guessable(nowMs: number): boolean {
    return this.#rate.known || this.concurrency < 2 || this.#answers.total(nowMs) >= guessedFromCount;
  }

  #cutRate(call: EndedCall): void {
    const { endedMs } = call;
    const paces = this.#paces(call);
    const seen = this.#answers.total(endedMs);
    // It took more than this within the last second: what it refuses now is still for that.
    const current = this.#rate.value;
    if (current <= hangover * (seen - 1)) return;
    // A count of a few says less than the pace that was kept a second ago.
    const kept = Math.min(seen + 1, this.#rate.valueBefore);
    const level = Math.min(current, Math.max(seen, kept, this.#rate.takenPerSecond(endedMs) ?? seen + 1));
    const young = endedMs - (this.#firstStartMs ?? endedMs) < 1_000;
    this.#rate.cut(level * 0.97, {
      nowMs: endedMs,
      perSecond: level,
      sure: !young,
      share: this.#refusals.share,
    });
    this.#restart(paces, endedMs);
  }

  #cutConcurrency(level: number, call: EndedCall): void {
    const { endedMs } = call;
    const paces = this.#paces(call);
    const perSecond = (level / this.#meanCallMs) * 1_000;
    this.#concurrency.cut(level, {
      nowMs: endedMs,
      perSecond,
      sure: true,
      share: 1,
    });
    this.#restart(paces, endedMs);
  }

  #forget(): void {
    this.#concurrency.forget();
    this.#rate.forget();
  }

  #restart(paces: Paces, nowMs: number): void {
    this.#lastCutMs = nowMs;
    this.#refusals.cut(paces.perSecond < comparedPerSecond ? 0 : paces.perSecond);
    this.#timeOuts.cut(paces.atOnce);
    this.#slowAnswers.cut(paces.atOnce);
  }
}
