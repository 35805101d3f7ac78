/**
 * `work` over all items, at most `limit` at a time, results in the order of the items. After a failure nothing new is started,
 * and it is thrown only when everything that was started has settled: no effect outlives the call.
 */
export async function concurrently<T, R>(limit: number, items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const failures: unknown[] = [];
  const upcoming = items.entries();
  const lane = async () => {
    for (const [index, item] of upcoming) {
      try {
        results[index] = await work(item);
      } catch (error) {
        failures.push(error);
      }
      if (failures.length > 0) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  if (failures.length > 0) throw failures[0];
  return results;
}
