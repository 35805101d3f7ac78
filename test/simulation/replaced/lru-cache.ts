import { LRUCache as RealCache } from "lru-cache";

/** Stands for lru-cache: a cache for 100,000 makes room for as many when it is made, and here processes start all the time. */
const mostEntries = 2_000;

export class LRUCache<K extends {}, V extends {}> extends RealCache<K, V> {
  constructor(options: RealCache.Options<K, V, unknown>) {
    super({ ...options, max: Math.min(options.max ?? mostEntries, mostEntries) } as RealCache.Options<K, V, unknown>);
  }
}
