/** The first emission is the splitter's, two more are the watchdog's (README, Exactness, watchdog). */
const maxEmission = 3;

/** The records close themselves at the deadline; an hour later the watchdog closes what is left. Micros. */
export const closingGraceMicros = 3_600 * 1_000_000;

/** What a check on a refresh goes by. Times in micros. */
export interface WatchdogFacts {
  readonly requestedAt: number;
  readonly deadline: number;
  /** The highest emission of its tokens so far. */
  readonly emission: number;
  /** When the check was due: append time + delay. From the record and not from a clock, so that a replay decides alike. */
  readonly dueAt: number;
  readonly missingCount: number;
  /** How long the rows of a refresh are kept, from requested_at. */
  readonly retentionMicros: number;
  /** Whether a token of it may still be on its way; undefined while nobody has asked, which is the dear part. */
  readonly underWay: boolean | undefined;
}

/**
 * - completed, expired: the chain of checks ends. Expired: its rows are gone, an outcome would count a refresh anew.
 * - ask: find out whether anything is under way, then look at the progress again, in that order.
 * - under_way, exhausted: nothing to be done but to look again later. Exhausted: emitted often enough, the deadline will close it.
 * - emit_again, close: what their names say.
 */
export type WatchdogAction = "completed" | "expired" | "ask" | "under_way" | "exhausted" | "emit_again" | "close";

export function decide(facts: WatchdogFacts): WatchdogAction {
  if (facts.missingCount === 0) return "completed";
  if (facts.dueAt >= facts.requestedAt + facts.retentionMicros) return "expired";
  if (facts.dueAt >= facts.deadline + closingGraceMicros) return "close";
  if (facts.emission >= maxEmission) return "exhausted";
  if (facts.underWay === undefined) return "ask";
  return facts.underWay ? "under_way" : "emit_again";
}
