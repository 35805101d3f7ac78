import { LRUCache } from "lru-cache";
import type { TokenRefresh } from "../../common/messages/records.ts";

/** README, Retries. Longer than a producer's tries and a rebalance together may take to bring a record back. */
const memoryMs = 600_000;
/** About 30 MB at the most; a full memory only means that a duplicate may be called again. */
const rememberedCount = 200_000;

/**
 * What stays the same when the log brings a record twice, or a producer wrote it twice. A record that was moved to a delay tier
 * keeps it too: only what was called, or closed, is finished.
 */
export function identityOf({ refresh_id, ordinal, attempt, emission }: TokenRefresh): string {
  return `${refresh_id}/${ordinal}/${attempt}/${emission}`;
}

/** The identities of what was finished here in the last ten minutes. */
export class FinishedWork {
  readonly #identities: LRUCache<string, true>;

  constructor(monotonicMs: () => number) {
    // Without a resolution the cache would set timers of its own to save looks at the clock.
    this.#identities = new LRUCache({ max: rememberedCount, ttl: memoryMs, ttlResolution: 0, perf: { now: monotonicMs } });
  }

  add(identity: string): void {
    this.#identities.set(identity, true);
  }

  has(identity: string): boolean {
    return this.#identities.get(identity) === true;
  }
}
