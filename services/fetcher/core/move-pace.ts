import { RecentCount } from "./scheduling/recent-count.ts";

/** Some 5 % of the loop, at 25 µs a record, are always for moving; and half of it while nothing else is to be done. */
const perSecond = { least: 2_000, most: 20_000 };
/** What a call takes of the time for moving: twice what it costs all services together, so that a slow machine is not overrated. */
const callMs = 0.5;

/** How fast records may be moved: with the time that no call needs, and beside calls at a small share. */
export class MovePace {
  readonly #calls = new RecentCount();
  /** Records that were moved and whose time is not over. */
  #debt = 0;
  #paidMs = 0;

  called(nowMs: number): void {
    this.#calls.add(nowMs);
  }

  spend(count: number, nowMs: number): void {
    this.#pay(nowMs);
    this.#debt += count;
  }

  /** When more may be moved, at the pace of now: not after `nowMs` when at once. */
  readyAtMs(nowMs: number): number {
    this.#pay(nowMs);
    return nowMs + (this.#debt / this.perSecond(nowMs)) * 1_000;
  }

  perSecond(nowMs: number): number {
    const idleShare = 1 - (this.#calls.total(nowMs) * callMs) / 1_000;
    return Math.max(perSecond.least, perSecond.most * idleShare);
  }

  #pay(nowMs: number): void {
    this.#debt = Math.max(0, this.#debt - ((nowMs - this.#paidMs) * this.perSecond(nowMs)) / 1_000);
    this.#paidMs = nowMs;
  }
}
