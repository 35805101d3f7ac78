import { type Turn, turnNumber } from "./turn.ts";

/**
 * README, Retries. Longer than a producer's tries and a rebalance together may take to bring a record back: two whole generations,
 * that is ten minutes at least, and fifteen at most.
 */
const turnMs = 300_000;
const generationCount = 3;
/** Of one generation: about 10 MB of them all. A generation that is full turns early, so a duplicate may be called again. */
const fullCount = 66_000;

/** The turns that were finished here in the last ten minutes. Forgotten by generation: to keep them by age costs far more. */
export class FinishedWork {
  readonly #monotonicMs: () => number;
  /** Youngest first, never empty. */
  #generations: Generation[] = [new Generation()];
  /** When the youngest began. */
  #sinceMs: number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#sinceMs = monotonicMs();
  }

  /** Only what was called, or closed: a record that was moved to a delay tier comes back under the same turn. */
  add(turn: Turn): void {
    this.#age();
    this.#generations[0]?.add(turn);
  }

  has(turn: Turn): boolean {
    this.#age();
    return this.#generations.some((generation) => generation.has(turn));
  }

  #age(): void {
    const nowMs = this.#monotonicMs();
    const due = Math.floor((nowMs - this.#sinceMs) / turnMs);
    if (due === 0 && (this.#generations[0]?.size ?? 0) < fullCount) return;
    this.#sinceMs = due === 0 ? nowMs : this.#sinceMs + due * turnMs;
    const born = Array.from({ length: Math.min(Math.max(due, 1), generationCount) }, () => new Generation());
    this.#generations = [...born, ...this.#generations].slice(0, generationCount);
  }
}

class Generation {
  readonly #byRefresh = new Map<string, Set<number>>();
  size = 0;

  add(turn: Turn): void {
    const turns = this.#byRefresh.get(turn.refresh_id) ?? new Set<number>();
    this.#byRefresh.set(turn.refresh_id, turns);
    this.size -= turns.size;
    turns.add(turnNumber(turn));
    this.size += turns.size;
  }

  has(turn: Turn): boolean {
    return this.#byRefresh.get(turn.refresh_id)?.has(turnNumber(turn)) ?? false;
  }
}
