import { type Turn, turnNumber } from "./turn.ts";
import type { Work } from "./work.ts";

/** What was taken and is not finished: one work for each turn. */
export class UnderWay {
  readonly #byRefresh = new Map<string, Map<number, Work>>();

  get(turn: Turn): Work | undefined {
    return this.#byRefresh.get(turn.refresh_id)?.get(turnNumber(turn));
  }

  add(work: Work): void {
    const { refresh } = work;
    const works = this.#byRefresh.get(refresh.refresh_id) ?? new Map<number, Work>();
    this.#byRefresh.set(refresh.refresh_id, works);
    works.set(turnNumber(refresh), work);
  }

  delete(turn: Turn): void {
    const works = this.#byRefresh.get(turn.refresh_id);
    works?.delete(turnNumber(turn));
    if (works?.size === 0) this.#byRefresh.delete(turn.refresh_id);
  }

  *[Symbol.iterator](): Iterator<Work> {
    for (const works of this.#byRefresh.values()) yield* works.values();
  }
}
