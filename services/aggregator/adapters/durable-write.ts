import { setTimeout as delay } from "node:timers/promises";
import { isCassandraUnavailable } from "../../common/cassandra/errors.ts";
import { AbandonedError, messageOf } from "../../common/errors.ts";
import type { Logger } from "../../common/logging/logger.ts";

/** Tries one write again until Cassandra has it. */
export type DurableWrite = (write: () => Promise<void>, signal: AbortSignal) => Promise<void>;

/**
 * A write without an answer may have reached a minority of the replicas. Reading what it left behind and deciding anew could then
 * skip what that minority alone has, so the same write is repeated until a majority has it. What Cassandra will never take
 * (`invalid`) is thrown; so is AbandonedError when `signal` aborts.
 */
export function createDurableWrite(logger: Logger, firstPauseMs = 100): DurableWrite {
  return async (write, signal) => {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      if (signal.aborted) throw new AbandonedError("the partition was given up before Cassandra had its rows");
      try {
        return await write();
      } catch (error) {
        if (!isCassandraUnavailable(error)) throw error;
        logger.warn({ failure: error.failure, reason: messageOf(error), pauseMs }, "aggregator.write_retried");
      }
      await delay(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  };
}
