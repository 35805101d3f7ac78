import { EventHeap } from "./event-heap.ts";
import type { Owner, PlannedEvent } from "./planned-event.ts";

export interface Plan {
  /** Whose event it is; the world's when absent. */
  readonly owner?: Owner | undefined;
  /** A look that finds nothing as long as nothing else happens: polls, heartbeats, intervals. They may be skipped together. */
  readonly background?: boolean;
}

/** An idle stretch of at least this is skipped. */
const idleMs = 10_000;
/** Before a skip everything in the background has its turn: no interval that could find something is longer. */
const settleMs = 2_000;
/** What happens in the background between a skip and the event it leads to: heartbeats above all, so that leases are valid. */
const leadMs = 2_500;
const realSetImmediate = setImmediate;

/**
 * The only clock and the only order of things. One event happens, then everything that follows from it without waiting (promises
 * included), then the next. While nothing but background events is left for long, time jumps, as if they had all found nothing.
 */
export class VirtualTime {
  readonly #foreground = new EventHeap();
  readonly #background = new EventHeap();
  readonly #onJump: ((ms: number) => void)[] = [];
  #nowMs = 0;
  #owner: Owner | undefined;
  #inBackground = false;
  #lastForegroundMs = 0;
  #eventCount = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Whose event happens now. */
  get owner(): Owner | undefined {
    return this.#owner;
  }

  get inBackground(): boolean {
    return this.#inBackground;
  }

  get eventCount(): number {
    return this.#eventCount;
  }

  at(atMs: number, run: () => void, { owner, background = false }: Plan = {}): PlannedEvent {
    const event = { atMs: Math.max(atMs, this.#nowMs), run, owner, cancelled: false };
    (background ? this.#background : this.#foreground).add(event);
    return event;
  }

  after(delayMs: number, run: () => void, plan?: Plan): PlannedEvent {
    return this.at(this.#nowMs + delayMs, run, plan);
  }

  /** For what counts silence: a jump is none. */
  onJump(listener: (ms: number) => void): void {
    this.#onJump.push(listener);
  }

  /** Until only background events are left, or `stop` says so. Rejects when the time or the number of events is used up. */
  async run(limits: { readonly untilMs: number; readonly eventCount: number }, stop: () => boolean): Promise<void> {
    while (!stop()) {
      const event = this.#next();
      if (event === undefined) return;
      if (event.atMs > limits.untilMs) throw new Error(`the world is not at rest after ${limits.untilMs / 3_600_000} hours`);
      if (this.#eventCount++ > limits.eventCount) throw new Error(`the world is not at rest after ${limits.eventCount} events`);
      this.#nowMs = event.atMs;
      this.#owner = event.owner;
      event.run();
      // Promises and ticks are worked off before the next turn of the loop: nothing that follows from the event is left.
      await new Promise<void>((resolve) => void realSetImmediate(resolve));
    }
  }

  #next(): PlannedEvent | undefined {
    for (;;) {
      const [foreground, background] = [this.#foreground.first, this.#background.first];
      if (foreground === undefined && this.#quiet(background)) return undefined;
      const inBackground = background !== undefined && (foreground === undefined || background.atMs < foreground.atMs);
      if (inBackground && foreground !== undefined) this.#jumpTowards(foreground.atMs, background);
      const heap = inBackground ? this.#background : this.#foreground;
      const event = heap.take();
      if (event === undefined) return undefined;
      const { owner } = event;
      if (owner !== undefined && !owner.alive) continue;
      if (owner !== undefined && owner.stoppedUntilMs > event.atMs) {
        event.atMs = owner.stoppedUntilMs;
        heap.add(event);
        continue;
      }
      this.#inBackground = inBackground;
      if (!inBackground) this.#lastForegroundMs = event.atMs;
      return event;
    }
  }

  /** Everything in the background had its turn since something happened. */
  #quiet(next: PlannedEvent | undefined): boolean {
    return next === undefined || next.atMs > this.#lastForegroundMs + settleMs;
  }

  #jumpTowards(atMs: number, next: PlannedEvent): void {
    const ms = atMs - leadMs - next.atMs;
    if (ms < idleMs || !this.#quiet(next)) return;
    this.#background.shift(ms);
    for (const listener of this.#onJump) listener(ms);
  }
}
