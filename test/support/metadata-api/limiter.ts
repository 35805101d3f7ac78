/** A hidden limit of the simulated API. `calls` and `perSecond` are what it admits; nothing of it is told to the caller. */
export type Limit =
  | { readonly kind: "fixed_window"; readonly perSecond: number }
  | { readonly kind: "sliding_window"; readonly perSecond: number }
  | { readonly kind: "token_bucket"; readonly perSecond: number; readonly burst: number }
  | { readonly kind: "in_flight"; readonly calls: number };

/** Whether a call at `nowMs` is admitted, with `inFlight` admitted ones unanswered. Time never goes back; a refusal costs nothing. */
export type Limiter = (nowMs: number, inFlight: number) => boolean;

const windowMs = 1_000;
/** Sums of interval lengths such as 1000 / 3 are not exact. */
const roundingMs = 1e-6;

export function createLimiter(limit: Limit): Limiter {
  switch (limit.kind) {
    case "fixed_window":
      return fixedWindow(limit.perSecond);
    case "sliding_window":
      return slidingWindow(limit.perSecond);
    case "token_bucket":
      return tokenBucket(limit.perSecond, limit.burst);
    case "in_flight":
      return (_nowMs, inFlight) => inFlight < limit.calls;
  }
}

/** Counts by whole seconds: up to twice the rate around a border. */
function fixedWindow(perSecond: number): Limiter {
  let window = Number.NaN;
  let admitted = 0;
  return (nowMs) => {
    const current = Math.floor(nowMs / windowMs);
    if (current !== window) {
      window = current;
      admitted = 0;
    }
    if (admitted === perSecond) return false;
    admitted += 1;
    return true;
  };
}

/** Never more than `perSecond` in any second, wherever it begins: remembers when each of them came. */
function slidingWindow(perSecond: number): Limiter {
  const admittedAtMs = new Float64Array(perSecond).fill(Number.NEGATIVE_INFINITY);
  let oldest = 0;
  return (nowMs) => {
    if (nowMs - (admittedAtMs[oldest] ?? 0) < windowMs) return false;
    admittedAtMs[oldest] = nowMs;
    oldest = (oldest + 1) % perSecond;
    return true;
  };
}

/** Told by the time at which the bucket would be full again: no tokens to count, no drift. */
function tokenBucket(perSecond: number, burst: number): Limiter {
  const intervalMs = windowMs / perSecond;
  let fullAtMs = Number.NEGATIVE_INFINITY;
  return (nowMs) => {
    const next = Math.max(fullAtMs, nowMs) + intervalMs;
    if (next - nowMs > burst * intervalMs + roundingMs) return false;
    fullAtMs = next;
    return true;
  };
}
