import { describe, expect, it } from "vitest";
import { concurrently } from "../../../../services/common/cassandra/parallel.ts";

describe("concurrently", () => {
  it("gives results in the order of the items, whichever ends first", async () => {
    const work = async (turns: number) => {
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      return turns;
    };
    expect(await concurrently(3, [9, 1, 5, 0, 7], work)).toEqual([9, 1, 5, 0, 7]);
    expect(await concurrently(3, [], work)).toEqual([]);
  });

  it("has no more under way than its limit", async () => {
    let underWay = 0;
    let most = 0;
    const work = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
    };
    await concurrently(4, Array.from({ length: 50 }), work);
    expect(most).toBe(4);
  });

  it("lets no effect outlive a failure: what was started settles first, nothing new starts", async () => {
    const slow = Promise.withResolvers<void>();
    const started: number[] = [];
    let settled = false;
    const result = concurrently(2, [0, 1, 2, 3], async (item) => {
      started.push(item);
      if (item === 0) throw new Error("lost");
      await slow.promise;
    }).catch((error: Error) => {
      settled = true;
      return error.message;
    });
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    expect({ settled, started }).toEqual({ settled: false, started: [0, 1] });
    slow.resolve();
    expect(await result).toBe("lost");
    expect(started).toEqual([0, 1]);
  });
});
