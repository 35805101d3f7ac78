import { LRUCache } from "lru-cache";
import type { LearnedSpeed } from "./host-speed.ts";

export interface LearnedHost extends LearnedSpeed {
  readonly untilMs: number;
}

const rememberedCount = 10_000;
/** A host may have been given more machines, or fewer, since. */
const rememberedMs = 600_000;
const nothing: LearnedHost = { concurrency: undefined, perSecond: undefined, untilMs: Number.NEGATIVE_INFINITY };

/** What was learned of origins lately: for a queue that was forgotten, and for another project's queue of the same origin. */
export class LearnedHosts {
  readonly #hosts = new LRUCache<string, { readonly learned: LearnedHost; readonly atMs: number }>({ max: rememberedCount });

  set(origin: string, learned: LearnedHost, nowMs: number): void {
    this.#hosts.set(origin, { learned, atMs: nowMs });
  }

  get(origin: string, nowMs: number): LearnedHost {
    const entry = this.#hosts.get(origin);
    if (entry === undefined || nowMs - entry.atMs > rememberedMs) return nothing;
    const { learned } = entry;
    return learned.untilMs > nowMs ? learned : { ...learned, untilMs: nothing.untilMs };
  }
}
