import { describe, expect, it } from "vitest";
import { type Goal, judge, type Verdict } from "../../benchmark/measure/verdict.ts";

const more: Goal = { name: "more", direction: "at least", goal: 0.2, floor: 0.15 };
const less: Goal = { name: "less", direction: "at most", goal: 80, floor: 100, unit: "ms" };
const noFloor: Goal = { name: "no floor", direction: "at least", goal: 0.95 };

describe("the verdict on a median", () => {
  it.each<[string, Goal, number, Verdict]>([
    ["above what is wanted", more, 0.3, "reached"],
    ["exactly at what is wanted", more, 0.2, "reached"],
    ["between floor and goal", more, 0.19, "floor only"],
    ["exactly at the floor", more, 0.15, "floor only"],
    ["below the floor", more, 0.149, "missed"],
    ["below a most", less, 79, "reached"],
    ["between a most and its floor", less, 90, "floor only"],
    ["beyond both", less, 101, "missed"],
    ["short of a goal without a floor", noFloor, 0.949, "missed"],
  ])("%s", (_what, goal, value, verdict) => {
    expect(judge({ ...goal, samples: [value] }).verdict).toBe(verdict);
  });
});

it("goes by the median: one bad round is not the verdict", () => {
  expect(judge({ ...more, samples: [0.3, 0.01, 0.25] }).verdict).toBe("reached");
});

it("calls a figure of a void row void, however good it looks", () => {
  expect(judge({ ...more, samples: [0.9] }, true).verdict).toBe("void");
});
