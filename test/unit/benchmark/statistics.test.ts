import { expect, it } from "vitest";
import { median, quantile, ratios, summarise } from "../../benchmark/measure/statistics.ts";

it.each([
  { values: [3], share: 0.5, expected: 3 },
  { values: [4, 1, 3, 2], share: 0.5, expected: 2.5 },
  { values: [4, 1, 3, 2], share: 0, expected: 1 },
  { values: [4, 1, 3, 2], share: 1, expected: 4 },
  { values: [10, 20, 30], share: 0.25, expected: 15 },
  // Numbers, not their texts, are what is sorted.
  { values: [100, 9, 20], share: 1, expected: 100 },
])("quantile $share of $values is $expected", ({ values, share, expected }) => {
  expect(quantile(values, share)).toBe(expected);
});

it("leaves the series as it was", () => {
  const values = [3, 1, 2];
  median(values);
  expect(values).toEqual([3, 1, 2]);
});

it("has nothing to say of no values", () => {
  expect(() => summarise([])).toThrow(RangeError);
});

it("summarises by quartiles and ends", () => {
  expect(summarise([5, 1, 2, 4, 3])).toEqual({ count: 5, median: 3, min: 1, max: 5, lowerQuartile: 2, upperQuartile: 4 });
});

it("divides round by round", () => {
  expect(ratios([10, 30], [5, 10])).toEqual([2, 3]);
});

it("refuses sides that were not measured in the same rounds", () => {
  expect(() => ratios([1, 2], [1])).toThrow(RangeError);
});
