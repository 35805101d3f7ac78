import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bucketOf, parseTokenId } from "../../../../services/common/messages/token-id.ts";

const largest = 2n ** 256n - 1n;
const tokenIds = fc.bigInt({ min: 0n, max: largest });

describe("parseTokenId", () => {
  it("takes every canonical spelling and no number above 2^256 - 1", () => {
    fc.assert(fc.property(tokenIds, (id) => parseTokenId(id.toString()) === id.toString()));
    fc.assert(
      fc.property(fc.bigInt({ min: largest + 1n, max: largest ** 2n }), (id) => parseTokenId(id.toString()) === undefined),
    );
  });

  it("takes of all texts those that are the decimal spelling of a number of 256 bits", () => {
    const digits = fc.string({ unit: fc.constantFrom(..."0123456789"), maxLength: 80 });
    const nearlyDigits = fc.string({ unit: fc.constantFrom(..."0019 -+.ex\n١"), maxLength: 80 });
    fc.assert(
      fc.property(fc.oneof(digits, nearlyDigits, fc.string()), (text) => {
        const value = /^[0-9]+$/.test(text) ? BigInt(text) : -1n;
        expect(parseTokenId(text)).toBe(value >= 0n && value <= largest && value.toString() === text ? text : undefined);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([["0"], ["1"], [largest.toString()], ["9".repeat(77)]])("takes %s", (text) => {
    expect(parseTokenId(text)).toBe(text);
  });

  it.each([
    ["empty", ""],
    ["a leading zero", "01"],
    ["zero twice", "00"],
    ["a sign", "-1"],
    ["a plus sign", "+1"],
    ["an exponent", "1e3"],
    ["hexadecimal", "0x1"],
    ["a fraction", "1.0"],
    ["a blank before", " 1"],
    ["a line end after", "1\n"],
    ["digits of another script", "١٢٣"],
    ["full-width digits", "１２"],
    ["one more than the largest", (largest + 1n).toString()],
    ["78 nines", "9".repeat(78)],
    ["79 digits", "1".repeat(79)],
    ["a megabyte of digits", "1".repeat(1_000_000)],
  ])("refuses %s", (_what, text) => {
    expect(parseTokenId(text)).toBeUndefined();
  });
});

describe("bucketOf", () => {
  it("puts neighbours of one block of 256 together, and nobody else", () => {
    fc.assert(
      fc.property(tokenIds, tokenIds, (one, other) => {
        const together = one / 256n === other / 256n;
        return (bucketOf(one.toString()) === bucketOf(other.toString())) === together;
      }),
    );
  });

  it.each([
    ["0", "0"],
    ["255", "0"],
    ["256", "1"],
    ["999999999999999", "3906249999999"],
    ["1000000000000000", "3906250000000"],
    [largest.toString(), (2n ** 248n - 1n).toString()],
  ])("puts %s into bucket %s", (tokenId, bucket) => {
    expect(bucketOf(tokenId)).toBe(bucket);
  });
});
