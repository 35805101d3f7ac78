/** How a host answers a call that has just reached it. */
export interface Answer {
  readonly status: 200 | 404 | 429 | 503;
  /** How long it works on it. */
  readonly workMs: number;
  readonly retryAfterMs?: number;
}

/** A Metadata API; told of each call when it comes. */
export interface Host {
  arrive(nowMs: number): Answer;
}

type Random = () => number;
/** A value that may change in the course of the simulation. */
export type Changing = (nowMs: number) => number;

export interface Work {
  readonly latencyMs: number;
  /** 0.5: between half and one and a half of it. */
  readonly jitter: number;
  readonly random: Random;
}

function workMs({ latencyMs, jitter, random }: Work): number {
  return latencyMs * (1 + jitter * (2 * random() - 1));
}

interface Refusing {
  readonly status?: 429 | 503;
  readonly retryAfterMs?: number;
  /** How long a refusal takes; the work's time when absent. */
  readonly refusalMs?: number;
}

function refusal({ status = 429, retryAfterMs, refusalMs }: Refusing, usualMs: number): Answer {
  return { status, workMs: refusalMs ?? usualMs, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** Whether one more call in a second is allowed; counts it when it is. */
type Counter = (nowMs: number, limit: number) => boolean;

export const counters = {
  fixedWindow: (): Counter => {
    let window = -1;
    let count = 0;
    return (nowMs, limit) => {
      const current = Math.floor(nowMs / 1_000);
      if (current !== window) count = 0;
      window = current;
      count += 1;
      return count <= limit;
    };
  },
  slidingWindow: (): Counter => {
    const times: number[] = [];
    return (nowMs, limit) => {
      while ((times[0] ?? Number.POSITIVE_INFINITY) <= nowMs - 1_000) times.shift();
      if (times.length >= limit) return false;
      times.push(nowMs);
      return true;
    };
  },
  /** Holds a fifth of a second's tokens, at least two. */
  tokenBucket: (): Counter => {
    let tokens = 2;
    let latestMs = 0;
    return (nowMs, limit) => {
      tokens = Math.min(Math.max(2, limit / 5), tokens + ((nowMs - latestMs) / 1_000) * limit);
      latestMs = nowMs;
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    };
  },
} as const;

export function rateLimited(work: Work, options: Refusing & { limit: Changing; counter: keyof typeof counters }): Host {
  const allows = counters[options.counter]();
  return {
    arrive: (nowMs) => {
      const usualMs = workMs(work);
      return allows(nowMs, options.limit(nowMs)) ? { status: 200, workMs: usualMs } : refusal(options, usualMs);
    },
  };
}

export function concurrencyLimited(work: Work, options: Refusing & { limit: Changing }): Host {
  let ends: number[] = [];
  return {
    arrive: (nowMs) => {
      const usualMs = workMs(work);
      ends = ends.filter((endMs) => endMs > nowMs);
      if (ends.length >= options.limit(nowMs)) return refusal(options, usualMs);
      ends.push(nowMs + usualMs);
      return { status: 200, workMs: usualMs };
    },
  };
}

/** A few workers; the calls queue for them, and nothing is ever refused. */
export function queueing(work: Work, { workers }: { workers: number }): Host {
  const freeAtMs = Array.from({ length: workers }, () => 0);
  return {
    arrive: (nowMs) => {
      const soonest = freeAtMs.indexOf(Math.min(...freeAtMs));
      const endMs = Math.max(nowMs, freeAtMs[soonest] ?? 0) + workMs(work);
      freeAtMs[soonest] = endMs;
      return { status: 200, workMs: endMs - nowMs };
    },
  };
}

export function unlimited(work: Work): Host {
  return { arrive: () => ({ status: 200, workMs: workMs(work) }) };
}

/** A share of its answers is a refusal, whatever the load. */
export function flaky(work: Work, options: Refusing & { share: Changing }): Host {
  return {
    arrive: (nowMs) => {
      const usualMs = workMs(work);
      return work.random() < options.share(nowMs)
        ? refusal({ status: 503, ...options }, usualMs)
        : { status: 200, workMs: usualMs };
    },
  };
}

export function hanging(work: Work, { share }: { share: Changing }): Host {
  return {
    arrive: (nowMs) => ({ status: 200, workMs: work.random() < share(nowMs) ? 60_000 : workMs(work) }),
  };
}
