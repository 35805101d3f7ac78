import { type Summary, summarise } from "./statistics.ts";

/** What a figure has to reach; `floor` is the worst that is still acceptable. */
export interface Goal {
  /** Unique within its row, such as `of the bare loop`. */
  readonly name: string;
  readonly direction: "at least" | "at most";
  readonly goal: number;
  readonly floor?: number;
  /** Such as `ms`; empty for a ratio. */
  readonly unit?: string;
}

export type Verdict = "reached" | "floor only" | "missed" | "void";

/** A goal with what was measured: one sample for each round. */
export interface Figure extends Goal {
  readonly samples: readonly number[];
}

export interface JudgedFigure extends Figure {
  readonly summary: Summary;
  readonly verdict: Verdict;
}

/** By the median. A row that is void says nothing about its figures. */
export function judge(figure: Figure, isVoid = false): JudgedFigure {
  const summary = summarise(figure.samples);
  return { ...figure, summary, verdict: isVoid ? "void" : verdictOf(figure, summary.median) };
}

function verdictOf({ direction, goal, floor }: Goal, value: number): Verdict {
  const passes = (limit: number) => (direction === "at least" ? value >= limit : value <= limit);
  if (passes(goal)) return "reached";
  return floor !== undefined && passes(floor) ? "floor only" : "missed";
}
