/** Offsets of one generation stay below this: 3.5 years at ten thousand records a second in one partition. */
const offsetsPerGeneration = 2 ** 40;

/**
 * The version of everything an outcome record causes: generation × 2^40 + offset (README, Exactness). Strictly increasing per
 * collection, the same on every replay, and an exact number up to generation 8191.
 */
export function versionOf(generation: number, offset: number): number {
  return generation * offsetsPerGeneration + offset;
}
