import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countBits, emptyBitmap, hasBit, withBit } from "../../../services/aggregator/core/bitmap.ts";

describe("bitmap by ordinal", () => {
  it("lays ordinal n at bit n & 7 of byte n >> 3, as the other services read it", () => {
    expect([...withBit(withBit(emptyBitmap(10), 0), 9)]).toEqual([0b0000_0001, 0b0000_0010]);
  });

  it("holds exactly the ordinals that were set, and leaves the bitmap it was made from alone", () => {
    const ordinals = fc.uniqueArray(fc.nat({ max: 999 }));
    fc.assert(
      fc.property(ordinals, (set) => {
        const empty = emptyBitmap(1_000);
        const bitmap = set.reduce(withBit, empty);
        expect(countBits(bitmap)).toBe(set.length);
        expect(Array.from({ length: 1_000 }, (_, ordinal) => ordinal).filter((ordinal) => hasBit(bitmap, ordinal))).toEqual(
          set.toSorted((a, b) => a - b),
        );
        expect(countBits(empty)).toBe(0);
      }),
    );
  });

  it("leaves a stored bitmap alone, which comes as a Buffer: its slice is no copy", () => {
    const stored = Buffer.from([0b0000_0001, 0]);
    expect([...withBit(stored, 9)]).toEqual([0b0000_0001, 0b0000_0010]);
    expect([...stored]).toEqual([0b0000_0001, 0]);
  });
});
