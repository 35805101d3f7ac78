const shortestSeconds = 60;
/** Cassandra takes no more. */
const longestSeconds = 20 * 365 * 86_400;

/** The TTL of a refresh's rows: what is left of the retention time, counted from the request, in whole seconds, at least 60. */
export function ttlSeconds(
  requestedAtMicros: number,
  { retentionSeconds, nowMs }: { retentionSeconds: number; nowMs: number },
): number {
  const left = Math.ceil(requestedAtMicros / 1_000_000 + retentionSeconds - nowMs / 1000);
  return Math.min(Math.max(left, shortestSeconds), longestSeconds);
}
