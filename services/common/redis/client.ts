import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { messageOf } from "../errors.ts";
import type { Logger } from "../logging/logger.ts";

export type { Redis } from "ioredis";

export interface RedisOptions {
  readonly url: string;
  /** Put before every key. */
  readonly keyPrefix: string;
  readonly logger: Logger;
}

/** How long the start waits for Redis before the service goes on without it. */
const startWaitMs = 2_000;

/**
 * A client for callers that can do without Redis and have somebody waiting: a command fails at once while the connection is
 * away and after half a second otherwise, nothing is queued and nothing is sent twice. A server that stopped answering is
 * dropped after a second, so that the next commands fail at once. It reconnects in the background without end.
 */
export async function connectRedis({ url, keyPrefix, logger }: RedisOptions): Promise<Redis> {
  const redis = new Redis(url, {
    keyPrefix,
    lazyConnect: true,
    connectTimeout: 1_000,
    commandTimeout: 500,
    socketTimeout: 1_000,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 10), 2_000),
    // A replica that was the primary: the address leads to the new one after a reconnect.
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
  });
  logChanges(redis, logger);
  await Promise.race([redis.connect().catch(() => undefined), delay(startWaitMs, undefined, { ref: false })]);
  return redis;
}

export async function closeRedis(redis: Redis): Promise<void> {
  if (redis.status === "ready") await redis.quit().catch(() => undefined);
  redis.disconnect();
}

/** One line when Redis goes and one when it comes, not one for every try in between. */
function logChanges(redis: Redis, logger: Logger): void {
  let lost = false;
  redis.on("error", (error) => {
    if (!lost) logger.warn({ reason: messageOf(error) }, "redis.lost");
    lost = true;
  });
  redis.on("ready", () => {
    if (lost) logger.info("redis.found");
    lost = false;
  });
}
