import { bitCount } from "./bit-count.ts";

/** The share of calls that may go wrong before it counts: while more is tried than before, and below what was too much. */
export interface Tolerated {
  readonly trying: number;
  readonly below: number;
  /** The most that may count as the host's own. */
  readonly own: number;
  /** A larger share does not end when the pace is halved, even if it is our doing. */
  readonly comparable: number;
  /** Calls that a share is measured with before it is compared. */
  readonly calls: number;
}

interface Seen {
  /** How much is asked of the host, in any unit. */
  readonly pace: number;
  /** No more is tried than the host is known to take. */
  readonly settled: boolean;
  /** Less is hardly possible. */
  readonly least: boolean;
}

/** A change is to be seen, so only about so many of the latest calls count. */
const recentCount = 100;
const measuredCount = 200;
/** So many that go wrong among the last ten are no chance, whatever the share is. */
const burstCount = 4;
const lookedAt = (1 << 10) - 1;
const provenCount = 3;
/** At the slowest pace of all, this is no chance. */
const leastShare = 0.1;

/**
 * How many calls go wrong in one way, and whether that is our doing. At half of a pace of which a host refuses up to half, it refuses
 * nothing: what still goes wrong then is its own, fewer calls would not lessen it. It is expected from then on, only more counts.
 */
export class CallShare {
  readonly #tolerated: Tolerated;
  /** Since the last cut. */
  readonly #recent = new DecayingShare(recentCount);
  readonly #all = new DecayingShare(recentCount);
  /** Of calls at half of the pace that was too much, or less. */
  readonly #slower = new DecayingShare(measuredCount);
  #tooMuch: { readonly pace: number; readonly share: number } | undefined;
  #own = 0;
  #mostOwn = 0;
  /** The last calls, the latest in the lowest bit: 1 for one that went wrong. */
  #history = 0;

  constructor(tolerated: Tolerated) {
    this.#tolerated = tolerated;
  }

  /** Of the calls since the last cut. */
  get share(): number {
    return this.#recent.share;
  }

  /** Every call; of those that were started before the last cut nothing else is to be said. */
  count(wrong: boolean): void {
    this.#all.add(wrong);
  }

  /** A call that was started since the last cut. True when it turns out that the last cuts were for nothing. */
  add(wrong: boolean, { pace, settled, least }: Seen): boolean {
    this.#history = ((this.#history << 1) | (wrong ? 1 : 0)) & lookedAt;
    this.#recent.add(wrong);
    this.#own = Math.min(this.#mostOwn, this.#own + (this.#all.share - this.#own) / recentCount);
    const atLeast = this.#tooMuch === undefined ? 0 : this.#tooMuch.pace / 2;
    if (!least && (!settled || pace > atLeast)) return false;
    this.#slower.add(wrong);
    return this.#compare(least);
  }

  #compare(least: boolean): boolean {
    const { calls, wrong, share } = this.#slower;
    const { own, comparable, calls: enough } = this.#tolerated;
    const before = this.#tooMuch?.share ?? 1;
    // More than before at half the pace: the host has changed, and what it did before says nothing.
    if (calls >= enough && comparable < 1 && share > 1.5 * before) this.#tooMuch = undefined;
    if (wrong < provenCount || (!least && this.#tooMuch === undefined)) return false;
    if (least ? share < leastShare : calls < enough || share < before / 2) return false;
    this.#mostOwn = least ? share : Math.min(own, 1.25 * share);
    this.#own = Math.min(this.#mostOwn, share);
    this.#tooMuch = undefined;
    this.#slower.reset();
    return true;
  }

  /** Whether more go wrong than are the host's own. */
  excessive(trying: boolean): boolean {
    const { calls, wrong } = this.#recent;
    const expected = this.#own * calls;
    // Twice the spread of a chance event.
    const chance = expected === 0 ? 0 : 1 + 0.25 * expected + 2 * Math.sqrt(expected);
    const { trying: whileTrying, below } = this.#tolerated;
    if (trying) return wrong > Math.max(whileTrying === 0 ? 0 : 1 + whileTrying * calls, expected + chance);
    if (bitCount(this.#history) >= burstCount + 15 * this.#own) return true;
    return wrong > 1 + Math.max(below * calls, expected + chance);
  }

  /** Starts anew after a cut. */
  cut(pace: number): void {
    const { share } = this.#all;
    if (this.#all.calls < this.#tolerated.calls || share > this.#tolerated.comparable) this.#tooMuch = undefined;
    else if (this.#tooMuch === undefined || pace > this.#tooMuch.pace) {
      this.#tooMuch = { pace, share };
      this.#slower.reset();
    }
    this.#recent.reset();
    this.#history = 0;
  }
}

class DecayingShare {
  readonly #most: number;
  calls = 0;
  wrong = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get share(): number {
    return this.wrong / Math.max(1, this.calls);
  }

  add(wrong: boolean): void {
    if (this.calls >= this.#most) {
      this.calls /= 2;
      this.wrong /= 2;
    }
    this.calls += 1;
    if (wrong) this.wrong += 1;
  }

  reset(): void {
    this.calls = 0;
    this.wrong = 0;
  }
}
