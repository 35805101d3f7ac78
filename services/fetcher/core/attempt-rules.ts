import type { TopicDefinition } from "../../common/kafka/topics.ts";
import type { TokenOutcome, TokenRefresh } from "../../common/messages/records.ts";
import { isRefreshId } from "../../common/messages/refresh-id.ts";
import { parseTokenId } from "../../common/messages/token-id.ts";
import { tierFor } from "../../common/retry/delay-tier.ts";
import { attemptOf, failed, succeeded } from "./outcomes.ts";
import type { CallFailed, CallResult } from "./results.ts";
import { isCountable } from "./turn.ts";

export interface AttemptRules {
  /** Calls that may be made for a token: specification section 8, 1 + 2 retries. */
  readonly maxAttempts: number;
  /** Shortest first, never empty. */
  readonly tiers: readonly TopicDefinition[];
}

/** Where a token goes after a call: to its outcome, or to a delay tier for the next attempt. */
export type Conclusion =
  | { readonly kind: "outcome"; readonly outcome: TokenOutcome }
  | { readonly kind: "retry"; readonly tier: TopicDefinition; readonly refresh: TokenRefresh };

/** Only 429 and 503 are tried again, everything else is final at once: specification section 3. */
export function conclude(refresh: TokenRefresh, result: CallResult, rules: AttemptRules): Conclusion {
  if (result.ok) return { kind: "outcome", outcome: succeeded(refresh, result) };
  if (!isRefusal(result) || refresh.attempt >= rules.maxAttempts) return { kind: "outcome", outcome: failed(refresh, result) };
  return {
    kind: "retry",
    tier: tierFor(Math.max(backOffMs(refresh.attempt, rules), result.retryAfterMs ?? 0), rules.tiers),
    refresh: { ...refresh, attempt: refresh.attempt + 1, attempts: [...refresh.attempts, attemptOf(result)] },
  };
}

function isRefusal(result: CallFailed): boolean {
  return result.status === 429 || result.status === 503;
}

/** Exponential, counted from the shortest tier: 2 s after the first attempt, 4 s after the second (served by the 10 s tier). */
function backOffMs(attempt: number, rules: AttemptRules): number {
  return (rules.tiers[0]?.delayMs ?? 0) * 2 ** (attempt - 1);
}

/** What no producer of ours writes. A text may lead to another path of the host. Under a ceiling below one a record would wait for ever, and its partition with it. */
export function invalidity(refresh: TokenRefresh, rules: AttemptRules): string | undefined {
  const { token_id: tokenId, attempt, attempts, max_concurrency: concurrency, max_requests_per_second: rate } = refresh;
  if (!isRefreshId(refresh.refresh_id)) return "a refresh_id that is no UUID in lower case";
  if (parseTokenId(tokenId) === undefined) return "a token_id that is no token id";
  if (attempt < 1) return `attempt ${attempt}`;
  if (!isCountable(refresh)) return `ordinal ${refresh.ordinal}, emission ${refresh.emission}, attempt ${attempt}`;
  if (Math.min(concurrency ?? 1, rate ?? 1) < 1) return `ceilings of ${concurrency} calls at once and ${rate} a second`;
  return attempt > rules.maxAttempts && attempts.length === 0 ? `attempt ${attempt} without the attempts before it` : undefined;
}
