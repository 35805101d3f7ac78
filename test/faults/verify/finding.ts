import type { Evidence } from "./evidence.ts";

export const invariants = [
  "I1",
  "I2",
  "I3",
  "I4",
  "I5",
  "I6",
  "I7",
  "I8",
  "I9",
  "I10",
  "I11",
  "I12",
  "I13",
  "I14",
  "I15",
  "I16",
  "I17",
  "I18",
] as const;
/** Of README, Guarantees; `alive`: no process ended that nobody had ended. */
export type Invariant = (typeof invariants)[number] | "alive";

export interface Finding {
  readonly invariant: Invariant;
  readonly promise: string;
  readonly expected: string;
  readonly found: string;
  /** What does not hold, one sentence each; empty when it holds. */
  readonly wrong: readonly string[];
}

/** What a check says; undefined where the scenario gives it nothing to look at. */
export type Verdict = Pick<Finding, "expected" | "found" | "wrong"> | undefined;

export interface Check {
  readonly invariant: Invariant;
  readonly promise: string;
  readonly look: (evidence: Evidence) => Verdict;
}

/** The usual verdict: so many things looked at, and those that are wrong. */
export function verdictOn<T>(
  what: string,
  things: readonly T[],
  wrongWith: (thing: T) => readonly string[] | string | undefined,
): Verdict {
  if (things.length === 0) return undefined;
  const wrong = things.flatMap((thing) => wrongWith(thing) ?? []);
  return { expected: `${things.length} ${what}`, found: wrong.length === 0 ? "all" : `${wrong.length} wrong`, wrong };
}
