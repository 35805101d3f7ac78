/** Where time comes from: an argument everywhere but at the edge. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. */
  nowMs(): number;
  /** Never goes back; only differences mean something. */
  monotonicMs(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

/** Milliseconds since the epoch as micros, a whole number. */
export function microsFromMs(ms: number): number {
  return Math.round(ms * 1000);
}

/** Micros as ISO 8601 UTC with microseconds: `2026-01-31T08:15:30.123456Z` (specification section 2). */
export function isoFromMicros(micros: number): string {
  const seconds = new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % 1_000_000).padStart(6, "0")}Z`;
}

/** The month of an instant in UTC, `2026-01`: what the lists of refreshes are cut by. */
export function monthFromMicros(micros: number): string {
  return new Date(Math.floor(micros / 1000)).toISOString().slice(0, 7);
}
