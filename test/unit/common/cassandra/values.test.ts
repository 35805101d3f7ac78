import { types } from "cassandra-driver";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parametersOf, rowOf } from "../../../../services/common/cassandra/values.ts";

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

describe("parameters", () => {
  it("carry every 64-bit integer there and back", () => {
    fc.assert(
      fc.property(int64, (value) => {
        const [sent] = parametersOf([value]);
        return sent instanceof types.Long && sent.toString() === value.toString() && rowOf({ sent }).sent === value;
      }),
    );
  });

  it.each([
    ["null", null],
    ["undefined", undefined],
    // The driver would send it as null.
    ["an empty list", []],
  ])("never delete a cell: %s leaves it as it is", (_what, value) => {
    expect(parametersOf([value])).toEqual([types.unset]);
  });

  it.each([[1.5], [Number.NaN], [Number.POSITIVE_INFINITY], [2 ** 53]])(
    "refuse %d, which would become another number",
    (value) => {
      expect(() => parametersOf([value])).toThrow(TypeError);
    },
  );

  it.each([[2n ** 63n], [-(2n ** 63n) - 1n]])("refuse %d, which does not fit 64 bits", (value) => {
    expect(() => parametersOf([value])).toThrow(RangeError);
  });

  it("send the bytes of a view and no others", () => {
    const [sent] = parametersOf([new Uint8Array([1, 2, 3, 4]).subarray(1, 3)]);
    expect(sent).toEqual(Buffer.from([2, 3]));
  });
});

describe("rows", () => {
  it("have plain values only", () => {
    const refreshId = "0190a1b2-0000-7000-8000-000000000001";
    const row = rowOf({ id: types.Uuid.fromString(refreshId), list: ["1"], map: { a: 1 }, none: null, text: "x" });
    expect(row).toEqual({ id: refreshId, list: ["1"], map: { a: 1 }, none: null, text: "x" });
  });
});
