import type { World } from "../world.ts";
import { type Evidence, gather } from "./evidence.ts";
import { type Check, type Finding, invariants } from "./finding.ts";
import { logChecks } from "./log-checks.ts";
import { refreshChecks } from "./refresh-checks.ts";
import { tokenChecks } from "./token-checks.ts";

const checks: readonly Check[] = [...refreshChecks, ...tokenChecks, ...logChecks].sort(
  (one, other) => rankOf(one) - rankOf(other),
);

export interface Verified {
  readonly findings: readonly Finding[];
  readonly counts: Counts;
}

export interface Counts {
  readonly refreshes: number;
  readonly tokens: number;
  readonly calls: number;
  /** Calls beyond one for each token and refresh and one for each refusal: what faults have repeated. */
  readonly repeatedCalls: number;
  readonly faults: number;
}

/** Waits until all that was accepted is over, looks at everything once more, and holds it against every guarantee. */
export async function verify(world: World, options: { readonly shortestDelayMs: number }): Promise<Verified> {
  const unfinished = await world.settle();
  const evidence = await gather(world, { unfinished, ...options });
  return { findings: judge(evidence), counts: countsOf(evidence) };
}

/** Every guarantee that the evidence has something to say of. */
export function judge(evidence: Evidence): Finding[] {
  return checks.flatMap(({ invariant, promise, look }) => {
    const verdict = look(evidence);
    return verdict === undefined ? [] : { invariant, promise, ...verdict };
  });
}

function countsOf({ account, refreshes, tokens }: Evidence): Counts {
  const calls = tokens.reduce((sum, token) => sum + token.calls.length, 0);
  const needed = tokens.map((token) => {
    const refusals = token.calls.filter(({ end }) => end === "429" || end === "503").length;
    return token.isRegistered ? Math.max(0, token.calls.length - refusals - token.refreshCount) : token.calls.length;
  });
  return {
    refreshes: refreshes.length,
    tokens: refreshes.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
    calls,
    repeatedCalls: needed.reduce((sum, count) => sum + count, 0),
    faults: account.faults.length,
  };
}

function rankOf({ invariant }: Check): number {
  return invariant === "alive" ? invariants.length : invariants.indexOf(invariant);
}
