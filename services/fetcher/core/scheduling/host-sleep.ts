import { bitCount } from "./bit-count.ts";
import type { EndedCall } from "./verdict.ts";

/** Refusals among the last calls that put a host to sleep. Fewer are what a rate that is tried out costs. */
const refusalCount = 5;
const lookedAtCount = 10;
const shortestMs = 200;
/** A host that recovers is found within this time. Each look costs some token one of its attempts, never its last while others wait. */
const longestMs = 5_000;
/** What each answer lets go at once besides the call that it makes room for: 1, 5, 25, 125 in three round trips. */
const rampStep = 4;
/** A host that has mostly failed for so long, and so many calls, fails whatever we do. */
const deadMs = 60_000;
const deadCount = 10;
/** Of the last 16 calls. A single answer among many failures changes nothing. */
const mostlyFailing = 8;

/**
 * When a host is left alone: until the instant that it asked for, and for a while that doubles each time when it refuses half of its
 * calls. It wakes up with one call; each answer lets one more go at once.
 *
 * A host that mostly fails for a minute, although it was left alone for most of it, does not fail for our speed. Its tokens get their
 * outcomes at a modest pace, until it mostly answers.
 */
export class HostSleep {
  #untilMs = Number.NEGATIVE_INFINITY;
  /** Calls at once after the sleep. */
  #ramp = Number.POSITIVE_INFINITY;
  #nextMs = shortestMs;
  /** The last calls since the host was woken, the latest in the lowest bit: 1 for a refusal. */
  #history = 0;
  #asks = false;
  #failingSinceMs: number | undefined;
  #failedCount = 0;
  /** The last calls, whatever it slept meanwhile: 1 for one that failed. */
  #recent = 0;

  get untilMs(): number {
    return this.#untilMs;
  }

  /** Calls that may be under way at once; to be compared with what was learned. */
  get ramp(): number {
    return this.#ramp;
  }

  /** Whether the last refusal said when to come back. */
  get asks(): boolean {
    return this.#asks;
  }

  sleep(untilMs: number): void {
    if (untilMs <= this.#untilMs) return;
    this.#untilMs = untilMs;
    this.#ramp = 1;
    this.#history = 0;
  }

  isDead(nowMs: number): boolean {
    return this.#failingSinceMs !== undefined && this.#failedCount >= deadCount && nowMs - this.#failingSinceMs >= deadMs;
  }

  ended(call: EndedCall): void {
    if (call.verdict === "answered") this.#answered(call);
    else this.#failed(call);
  }

  #answered({ startedMs }: EndedCall): void {
    this.#recent = (this.#recent << 1) & recentMask;
    if (bitCount(this.#recent) < mostlyFailing) {
      this.#failingSinceMs = undefined;
      this.#failedCount = 0;
    }
    if (startedMs < this.#untilMs) return;
    this.#history = (this.#history << 1) & mask;
    this.#ramp += rampStep;
    this.#nextMs = shortestMs;
  }

  #failed({ verdict, startedMs, endedMs, retryAfterMs }: EndedCall): void {
    this.#recent = ((this.#recent << 1) | 1) & recentMask;
    this.#failingSinceMs ??= endedMs;
    this.#failedCount += 1;
    if (verdict === "timed_out") return;
    this.#asks = retryAfterMs !== undefined;
    if (retryAfterMs !== undefined) this.sleep(endedMs + retryAfterMs);
    // What was started before it slept has been counted.
    if (startedMs < this.#untilMs || this.isDead(endedMs)) return;
    this.#history = ((this.#history << 1) | 1) & mask;
    if (this.#ramp > 1 && bitCount(this.#history) < refusalCount) return;
    this.sleep(endedMs + this.#nextMs);
    this.#nextMs = Math.min(longestMs, this.#nextMs * 2);
  }
}

const recentMask = (1 << 16) - 1;
const mask = (1 << lookedAtCount) - 1;
