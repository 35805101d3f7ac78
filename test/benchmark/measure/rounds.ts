import { type UsageLine, UsageMeter, type WatchedProcess } from "./process-usage.ts";

/** One of the things that are compared; `measure` returns the round's figure, such as tokens a second. */
export interface Side<F> {
  readonly processes: readonly WatchedProcess[];
  /** Tokens of one round: what CPU time is divided by. */
  readonly tokenCount: number;
  measure(round: number): Promise<F>;
}

export interface Measured<N extends string, F> {
  readonly samples: Readonly<Record<N, readonly F[]>>;
  readonly usage: Readonly<Record<N, readonly UsageLine[]>>;
}

/**
 * Measures the sides in turns, A-B-A-B: what the machine does meanwhile falls on all alike. Begin with rounds that do not count: just
 * started, the virtual machines run at a fraction of their speed.
 */
export async function inTurns<N extends string, F>(
  sides: Readonly<Record<N, Side<F>>>,
  options: { rounds: number; warmUps: number; onTurn: (side: N, round: number) => void },
): Promise<Measured<N, F>> {
  const names = Object.keys(sides) as N[];
  const samples = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<N, F[]>;
  const meters = Object.fromEntries(names.map((name) => [name, new UsageMeter()])) as Record<N, UsageMeter>;
  for (let round = -options.warmUps; round < options.rounds; round++) {
    for (const name of names) {
      options.onTurn(name, round);
      const side = sides[name];
      if (round < 0) await side.measure(round);
      else samples[name].push(await meters[name].during(side.processes, side.tokenCount, () => side.measure(round)));
    }
  }
  return { samples, usage: Object.fromEntries(names.map((name) => [name, meters[name].lines()])) as Record<N, UsageLine[]> };
}
