import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { copyOf, countBits, emptyBitmap, hasBit, setBit } from "../../../services/aggregator/core/bitmap.ts";

describe("bitmap by ordinal", () => {
  it("lays ordinal n at bit n & 7 of byte n >> 3, as the other services read it", () => {
    const bitmap = emptyBitmap(10);
    for (const ordinal of [0, 9]) setBit(bitmap, ordinal);
    expect([...bitmap]).toEqual([0b0000_0001, 0b0000_0010]);
  });

  it("holds exactly the ordinals that were set", () => {
    const ordinals = fc.uniqueArray(fc.nat({ max: 999 }));
    fc.assert(
      fc.property(ordinals, (set) => {
        const bitmap = emptyBitmap(1_000);
        for (const ordinal of set) setBit(bitmap, ordinal);
        expect(countBits(bitmap)).toBe(set.length);
        expect(Array.from({ length: 1_000 }, (_, ordinal) => ordinal).filter((ordinal) => hasBit(bitmap, ordinal))).toEqual(
          set.toSorted((a, b) => a - b),
        );
      }),
    );
  });

  it("is copied with memory of its own, also when it comes as a Buffer, whose slice has not", () => {
    const stored = Buffer.from([0b0000_0001, 0]);
    const copy = copyOf(stored);
    setBit(copy, 9);
    expect([...copy]).toEqual([0b0000_0001, 0b0000_0010]);
    expect([...stored]).toEqual([0b0000_0001, 0]);
  });
});
