import fc from "fast-check";
import { expect, it } from "vitest";
import { isCountable, turnNumber } from "../../../../services/fetcher/core/turn.ts";

// Every number that a record's fields can hold; most of them near the borders of what is countable.
const field = fc.oneof(fc.integer({ min: -2, max: 260 }), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }));
const turn = fc.record({ refresh_id: fc.constant("x"), ordinal: field, emission: field, attempt: field });

it("has a number of its own for each turn of a refresh that is countable", () => {
  fc.assert(
    fc.property(turn, turn, (one, other) => {
      fc.pre(isCountable(one) && isCountable(other));
      const same = one.ordinal === other.ordinal && one.emission === other.emission && one.attempt === other.attempt;
      expect(turnNumber(one) === turnNumber(other)).toBe(same);
      expect(Number.isSafeInteger(turnNumber(one))).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

it.each([
  [{ ordinal: 999, emission: 3, attempt: 4 }, true],
  [{ ordinal: 0, emission: 255, attempt: 255 }, true],
  [{ ordinal: -1, emission: 1, attempt: 1 }, false],
  [{ ordinal: 0, emission: 256, attempt: 1 }, false],
  [{ ordinal: 0, emission: 1, attempt: 256 }, false],
  [{ ordinal: 0, emission: 1, attempt: -1 }, false],
])("says of %o whether it is countable: %s", (numbers, countable) => {
  expect(isCountable({ refresh_id: "x", ...numbers })).toBe(countable);
});
