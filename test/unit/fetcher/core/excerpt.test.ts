import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { excerptOf } from "../../../../services/fetcher/core/excerpt.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("the excerpt of a failed answer", () => {
  it("is the whole of a short body, and an empty one is empty", () => {
    expect(excerptOf(bytesOf('{"error":"nö"}'))).toBe('{"error":"nö"}');
    expect(excerptOf(new Uint8Array())).toBe("");
  });

  it.each([1, 2, 3])("does not cut a character in two at 4 KiB, shifted by %i", (shift) => {
    const text = "x".repeat(shift) + "€".repeat(2_000);
    const excerpt = excerptOf(bytesOf(text));
    expect(text.startsWith(excerpt)).toBe(true);
    expect(bytesOf(excerpt).length).toBeGreaterThan(4_096 - 3);
  });

  it("replaces what is not UTF-8, and stays within 4 KiB", () => {
    expect(excerptOf(Uint8Array.of(0x61, 0xff, 0x62))).toBe("a\uFFFDb");
    expect(bytesOf(excerptOf(new Uint8Array(10_000).fill(0xff))).length).toBeLessThanOrEqual(4_096);
  });

  it("is valid text of at most 4 KiB for any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 6_000, size: "max" }), (body) => {
        const excerpt = excerptOf(body);
        expect(bytesOf(excerpt).length).toBeLessThanOrEqual(4_096);
        expect(excerpt.isWellFormed()).toBe(true);
      }),
    );
  });
});
