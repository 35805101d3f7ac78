/** What is told of a series of measurements. */
export interface Summary {
  readonly count: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  /** The middle half: from the 25th to the 75th percentile. */
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
}

/** Throws for an empty series: whoever has measured nothing has nothing to tell. */
export function summarise(values: readonly number[]): Summary {
  return {
    count: values.length,
    median: quantile(values, 0.5),
    min: quantile(values, 0),
    max: quantile(values, 1),
    lowerQuartile: quantile(values, 0.25),
    upperQuartile: quantile(values, 0.75),
  };
}

/** `share` from 0 to 1, between the two nearest values where it falls between them. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)];
  const above = sorted[Math.ceil(place)];
  if (below === undefined || above === undefined) throw new RangeError("no values");
  return below + (above - below) * (place - Math.floor(place));
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Round by round: what the two sides of one round share (the machine's mood) falls out of the ratio. */
export function ratios(numerators: readonly number[], denominators: readonly number[]): number[] {
  if (numerators.length !== denominators.length) throw new RangeError("sides with different numbers of rounds");
  return numerators.map((value, round) => value / (denominators[round] ?? Number.NaN));
}
