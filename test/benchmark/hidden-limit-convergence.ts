/** One call as the API saw it. */
export interface SeenCall {
  readonly atMs: number;
  readonly refused: boolean;
}

/** A stretch of time in which the API let through so many calls a second. */
export interface Stretch {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly perSecond: number;
}

export interface StretchFigures {
  /** From the change of the limit to the begin of the first good window; undefined when there was none. */
  readonly convergedAfterMs: number | undefined;
  /** Calls that were answered well, as a share of what the limit allows, and refused ones, as a share of all: from then on. */
  readonly goodput: number;
  readonly refusedShare: number;
}

const windowMs = 2_000;
const stepMs = 100;
/** Within this share of the limit from below (answered well) and from above (called at all). */
const tolerance = 0.15;

/**
 * How a caller that does not know the limit did in one stretch. It has found the limit when in a sliding window of two seconds the
 * answered calls come up to 85 % of it and all calls together exceed it by 15 % at most: the API itself keeps the answered ones down.
 * The steady state counts from there, and from `patienceMs` on when it was not found before.
 */
export function figuresOf(calls: readonly SeenCall[], stretch: Stretch, patienceMs: number): StretchFigures {
  const own = calls.filter(({ atMs }) => atMs >= stretch.fromMs && atMs < stretch.untilMs);
  const convergedAfterMs = convergence(own, stretch);
  const steadyFromMs = stretch.fromMs + Math.min(convergedAfterMs ?? patienceMs, patienceMs);
  const steady = own.filter(({ atMs }) => atMs >= steadyFromMs);
  const answered = steady.filter(({ refused }) => !refused).length;
  const allowed = (stretch.perSecond * (stretch.untilMs - steadyFromMs)) / 1_000;
  return {
    convergedAfterMs,
    goodput: answered / allowed,
    refusedShare: steady.length === 0 ? 0 : (steady.length - answered) / steady.length,
  };
}

function convergence(calls: readonly SeenCall[], { fromMs, untilMs, perSecond }: Stretch): number | undefined {
  const allowed = (perSecond * windowMs) / 1_000;
  for (let beginMs = fromMs; beginMs + windowMs <= untilMs; beginMs += stepMs) {
    const seen = calls.filter(({ atMs }) => atMs >= beginMs && atMs < beginMs + windowMs);
    const answered = seen.filter(({ refused }) => !refused).length;
    if (answered >= (1 - tolerance) * allowed && seen.length <= (1 + tolerance) * allowed) return beginMs - fromMs;
  }
  return undefined;
}
