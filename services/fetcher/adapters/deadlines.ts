import type { Clock } from "../../common/clock.ts";
import { LoopTime } from "../core/loop-time.ts";

/** Something that has a time to end by. */
export interface Expiring {
  expire(): void;
  /** Called again and again once it is under way for longer than usual: what nobody else notices can be noticed now. */
  look(): void;
}

const sweepMs = 20;
const usualMs = 100;

/**
 * One deadline for every call, kept by one sweep over the calls under way: a timer for each would cost three times as much, and
 * client time-outs start anew with every phase. All have the same length, so the oldest ends first.
 */
export class Deadlines<T extends Expiring> {
  readonly #limitMs: number;
  readonly #clock: Clock;
  readonly #time: LoopTime;
  readonly #startedAtMs = new Map<T, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(limitMs: number, clock: Clock) {
    this.#limitMs = limitMs;
    this.#clock = clock;
    this.#time = new LoopTime(clock.monotonicMs());
  }

  get size(): number {
    return this.#startedAtMs.size;
  }

  start(call: T): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#timer === undefined) {
      this.#time.turn(nowMs);
      this.#timer = setInterval(() => this.#turn(), sweepMs);
    }
    this.#startedAtMs.set(call, this.#time.read(nowMs));
  }

  end(call: T): void {
    this.#startedAtMs.delete(call);
  }

  /** Asked when something of the answer arrives: the sweep may not have come by yet. */
  isLate(call: T): boolean {
    return this.#passed(this.#startedAtMs.get(call) ?? Number.POSITIVE_INFINITY);
  }

  #passed(startedAtMs: number): boolean {
    return this.#time.read(this.#clock.monotonicMs()) - startedAtMs >= this.#limitMs;
  }

  #turn(): void {
    this.#time.turn(this.#clock.monotonicMs());
    if (this.#startedAtMs.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    // After the poll phase: what came into the sockets during a stall is read first.
    setImmediate(() => this.#sweep());
  }

  #sweep(): void {
    const nowMs = this.#time.read(this.#clock.monotonicMs());
    for (const [call, startedAtMs] of this.#startedAtMs) {
      const ageMs = nowMs - startedAtMs;
      if (ageMs < usualMs) return;
      if (ageMs < this.#limitMs) call.look();
      else call.expire();
    }
  }
}
