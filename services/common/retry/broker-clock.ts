import type { Clock } from "../clock.ts";
import type { RecordProducer } from "../kafka/contracts.ts";

/** One proof of the broker's time: a record with this append time was acknowledged, or fetched, at `seenAtMs`. */
export interface AppendSight {
  /** On the broker's clock. */
  readonly appendTimeMs: number;
  /** Monotonic: it was in the log by then. */
  readonly seenAtMs: number;
  /** Monotonic, for a record of our own: it was not in the log before. */
  readonly sentAtMs?: number;
}

/** What the broker's clock shows at least: never ahead of it, so that nothing is released early. */
export class BrokerClock {
  #offsetMs: number | undefined;

  observe(sight: AppendSight): void {
    const atLeastMs = sight.appendTimeMs - sight.seenAtMs;
    // Append times are cut to whole milliseconds: the clock may have shown almost one more.
    const atMostMs = sight.sentAtMs === undefined ? Number.POSITIVE_INFINITY : sight.appendTimeMs + 1 - sight.sentAtMs;
    const known = this.#offsetMs;
    // Above what this record allows: the broker's clock was set back, and what was known of it no longer holds.
    if (known === undefined || known < atLeastMs || known > atMostMs) this.#offsetMs = atLeastMs;
  }

  /** Milliseconds since the epoch on the broker's clock at a monotonic instant, at least; undefined before the first sight. */
  nowMs(monotonicMs: number): number | undefined {
    return this.#offsetMs === undefined ? undefined : monotonicMs + this.#offsetMs;
  }
}

/** The same producer, whose every acknowledgement teaches `brokerClock`. */
export function teachBrokerClock(producer: RecordProducer, brokerClock: BrokerClock, clock: Clock): RecordProducer {
  const learn = (appendTimeMs: number, sentAtMs: number): void =>
    brokerClock.observe({ appendTimeMs, sentAtMs, seenAtMs: clock.monotonicMs() });
  return {
    async send(record, timeoutMs) {
      const sentAtMs = clock.monotonicMs();
      const result = await producer.send(record, timeoutMs);
      if (result.ok) learn(result.appendTimeMs, sentAtMs);
      return result;
    },
    deliver(records, options) {
      const sentAtMs = clock.monotonicMs();
      return producer.deliver(records, options).then((results) => {
        const newest = results.findLast((result) => result.ok);
        if (newest?.ok) learn(newest.appendTimeMs, sentAtMs);
        return results;
      });
    },
    close: () => producer.close(),
  };
}
