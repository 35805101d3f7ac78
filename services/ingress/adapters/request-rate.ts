import { LRUCache } from "lru-cache";
import { type IRateLimiterRedisOptions, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Counter, Metrics } from "../../common/metrics/metrics.ts";
import type { Redis } from "../../common/redis/client.ts";
import type { RateDecision } from "../core/admission.ts";

/** How many different rates are remembered; there are as many as API keys have. */
const maxRates = 1_000;

export type RateDecisions = Counter<"limit" | "store" | "decision">;

/** `fallback`: Redis was away; what decided instead knows this process, and for refreshes Cassandra. */
export function countRateDecisions(metrics: Metrics): RateDecisions {
  return metrics.counter("rate_limit_decisions_total", "Decisions of the rate limits.", {
    limit: ["address", "project", "refreshes"],
    store: ["redis", "fallback"],
    decision: ["allowed", "refused"],
  });
}

/**
 * A rate of requests per second and bucket, counted over all instances in Redis, and in this process alone while Redis is away:
 * then the instances together let through as many times the rate as there are of them. Never rejects.
 */
export class RequestRate {
  readonly #limiters: LRUCache<number, Limiters>;
  readonly #name: "address" | "project";
  readonly #decisions: RateDecisions;

  constructor(redis: Redis, name: "address" | "project", decisions: RateDecisions) {
    this.#name = name;
    this.#decisions = decisions;
    this.#limiters = new LRUCache({ max: maxRates, memoMethod: (perSecond) => createLimiters(redis, name, perSecond) });
  }

  async take(bucket: string, perSecond: number): Promise<RateDecision> {
    const { shared, own } = this.#limiters.memo(perSecond);
    try {
      return this.#count("redis", await consume(shared, bucket));
    } catch {
      return this.#count("fallback", await consume(own, bucket));
    }
  }

  #count(store: "redis" | "fallback", decision: RateDecision): RateDecision {
    this.#decisions.inc({ limit: this.#name, store, decision: decision.allowed ? "allowed" : "refused" });
    return decision;
  }
}

interface Limiters {
  readonly shared: RateLimiterRedis;
  readonly own: RateLimiterMemory;
}

function createLimiters(redis: Redis, name: string, perSecond: number): Limiters {
  const options: IRateLimiterRedisOptions & { customIncrTtlLuaScript: string } = {
    storeClient: redis,
    keyPrefix: name,
    points: perSecond,
    duration: 1,
    rejectIfRedisNotReady: true,
    // A bucket that was refused is refused here until its time is up: a flood costs Redis nothing.
    inMemoryBlockOnConsumed: perSecond + 1,
    customIncrTtlLuaScript: slidingSecond,
  };
  return {
    shared: new RateLimiterRedis(options),
    own: new RateLimiterMemory({ keyPrefix: name, points: perSecond, duration: 1 }),
  };
}

/** Rejects when Redis could not be asked. */
async function consume(limiter: RateLimiterRedis | RateLimiterMemory, bucket: string): Promise<RateDecision> {
  try {
    await limiter.consume(bucket);
    return { allowed: true, retryAfterMs: 0 };
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return { allowed: false, retryAfterMs: thrown.msBeforeNext };
    throw thrown;
  }
}

/**
 * The library counts from a bucket's first request for a second, which lets nearly twice the rate through around the border.
 * This keeps the times of what was let through, so no second at all holds more. Redis's clock; a clock that goes back heals
 * with the key's expiry. Arguments: points wanted, seconds, limit. Gives: points used, milliseconds until one is free.
 */
const slidingSecond = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local window = ARGV[2] * 1000
local limit = tonumber(ARGV[3])
local oldest = redis.call('LINDEX', KEYS[1], 0)
while oldest and tonumber(oldest) <= now - window do
  redis.call('LPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], 0)
end
local used = redis.call('LLEN', KEYS[1])
if used >= limit then
  return {limit + 1, redis.call('LINDEX', KEYS[1], used - limit) + window - now}
end
redis.call('RPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], window)
return {used + 1, window}
`;
