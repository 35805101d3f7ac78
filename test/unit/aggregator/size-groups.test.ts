import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { groupBySize } from "../../../services/aggregator/core/size-groups.ts";

const limits = { maxBytes: 100, maxCount: 4, aloneBytes: 40 };

describe("grouping by size", () => {
  it("keeps every item once, within the bounds, large ones alone", () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 200 })), (sizes) => {
        const groups = groupBySize(sizes, (size) => size, limits);
        expect(groups.flat().toSorted((a, b) => a - b)).toEqual(sizes.toSorted((a, b) => a - b));
        for (const group of groups) {
          const bytes = group.reduce((sum, size) => sum + size, 0);
          expect(group.length).toBeGreaterThan(0);
          expect(group.length).toBeLessThanOrEqual(limits.maxCount);
          if (group.length > 1) expect(bytes).toBeLessThanOrEqual(limits.maxBytes);
          if (group.some((size) => size > limits.aloneBytes)) expect(group).toHaveLength(1);
        }
      }),
    );
  });

  it("fills a group before it opens the next, large items in between notwithstanding", () => {
    expect(groupBySize([30, 90, 30, 30, 30], (size) => size, limits)).toEqual([[30, 30, 30], [90], [30]]);
  });
});
