/** A list that is read by its keys, some of which lead nowhere. */
export interface ListSource<T> {
  /** The keys behind `after` in the order of the list, at most `limit`. The empty key stands before all. */
  keysAfter(after: string, limit: number): Promise<readonly string[]>;
  /** What each key leads to, in its place; undefined for a key that was written for something that never came, or has moved. */
  resolve(keys: readonly string[]): Promise<readonly (T | undefined)[]>;
}

export interface Listed<T> {
  readonly key: string;
  readonly item: T;
}

/** The next `limit` items behind a key, fewer only at the list's end: keys that lead nowhere are stepped over. */
export async function nextItems<T>(source: ListSource<T>, after: string, limit: number): Promise<readonly Listed<T>[]> {
  const found: Listed<T>[] = [];
  for (let from = after; found.length < limit; ) {
    const keys = await source.keysAfter(from, limit);
    const items = await source.resolve(keys);
    for (const [index, key] of keys.entries()) {
      const item = items[index];
      if (item !== undefined) found.push({ key, item });
    }
    if (keys.length < limit) break;
    from = keys.at(-1) ?? from;
  }
  return found.slice(0, limit);
}
