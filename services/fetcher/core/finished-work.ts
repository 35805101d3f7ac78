import type { TokenRefresh } from "../../common/messages/records.ts";

/**
 * README, Retries. Longer than a producer's tries and a rebalance together may take to bring a record back: two whole generations,
 * that is ten minutes at least, and fifteen at most.
 */
const turnMs = 300_000;
const generationCount = 3;
/** Of one generation: about 25 MB of them all. A generation that is full turns early, so a duplicate may be called again. */
const fullCount = 66_000;

/**
 * What stays the same when the log brings a record twice, or a producer wrote it twice. A record that was moved to a delay tier
 * keeps it too: only what was called, or closed, is finished. Joined, for a template would keep all its pieces: three times the memory.
 */
export function identityOf({ refresh_id, ordinal, attempt, emission }: TokenRefresh): string {
  return [refresh_id, ordinal, attempt, emission].join("/");
}

/** The identities of what was finished here in the last ten minutes. Forgotten by generation: to keep them by age costs far more. */
export class FinishedWork {
  readonly #monotonicMs: () => number;
  /** Youngest first, never empty. */
  #generations: Set<string>[] = [new Set()];
  /** When the youngest began. */
  #sinceMs: number;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#sinceMs = monotonicMs();
  }

  add(identity: string): void {
    this.#turn();
    this.#generations[0]?.add(identity);
  }

  has(identity: string): boolean {
    this.#turn();
    return this.#generations.some((identities) => identities.has(identity));
  }

  #turn(): void {
    const nowMs = this.#monotonicMs();
    const due = Math.floor((nowMs - this.#sinceMs) / turnMs);
    if (due === 0 && (this.#generations[0]?.size ?? 0) < fullCount) return;
    this.#sinceMs = due === 0 ? nowMs : this.#sinceMs + due * turnMs;
    const born = Array.from({ length: Math.min(Math.max(due, 1), generationCount) }, () => new Set<string>());
    this.#generations = [...born, ...this.#generations].slice(0, generationCount);
  }
}
