import fc from "fast-check";
import { expect, it } from "vitest";
import { bucketOf } from "../../../../services/common/messages/token-id.ts";
import { groupByBucket } from "../../../../services/registry/core/tokens.ts";

const tokenIds = fc.array(fc.bigInt({ min: 0n, max: 2_000n }).map(String), { maxLength: 600 });

it("writes each token once, in its own partition, and no partition twice", () => {
  fc.assert(
    fc.property(tokenIds, (ids) => {
      const groups = groupByBucket(ids);
      expect(groups.flatMap((group) => group.tokenIds).sort()).toEqual([...new Set(ids)].sort());
      expect(new Set(groups.map(({ bucket }) => bucket)).size).toBe(groups.length);
      for (const group of groups) {
        expect(group.tokenIds.every((id) => bucketOf(id) === group.bucket)).toBe(true);
        expect(group.tokenIds.length).toBeLessThanOrEqual(256);
      }
    }),
  );
});
