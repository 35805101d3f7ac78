import { seeded } from "../unit/fetcher/core/simulation/events.ts";

/** Where all chance of a world comes from. */
export class Chance {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seeded(seed);
  }

  between(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1));
  }

  /** Mostly short, sometimes long: as waiting times are. */
  wait(typicalMs: number): number {
    const draw = this.random();
    return draw < 0.9 ? typicalMs * (0.5 + this.random()) : typicalMs * (1 + 20 * this.random() * this.random());
  }

  happens(share: number): boolean {
    return share > 0 && this.random() < share;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.between(0, items.length - 1)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  /** Another stream, so that a draw more in one place changes nothing in the other. */
  fork(): Chance {
    return new Chance(this.between(0, 2 ** 31 - 1));
  }
}
