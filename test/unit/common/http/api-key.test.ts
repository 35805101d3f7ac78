import { createHash, randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createApiKey, parseApiKey } from "../../../../services/common/http/api-key.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const randomness = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe("an API key", () => {
  it("is found again by its hash, whatever chance gave", () => {
    fc.assert(
      fc.property(randomness, (bytes) => {
        const { apiKey, hash } = createApiKey(bytes);
        return /^amr_[0-9A-Za-z]{49}$/.test(apiKey) && parseApiKey(apiKey)?.hash === hash;
      }),
    );
  });

  it("is stored as the SHA-256 of its whole text", () => {
    const { apiKey, hash } = createApiKey(randomBytes(32));
    expect(hash).toBe(createHash("sha256").update(apiKey).digest("hex"));
  });

  it("keeps all 256 bits: different chance, different key", () => {
    const keys = new Set(Array.from({ length: 256 }, (_, bit) => createApiKey(oneBit(bit)).apiKey));
    expect(keys.size).toBe(256);
  });

  it("is turned away without a look-up when one character is wrong", () => {
    const { apiKey } = createApiKey(randomBytes(32));
    for (let at = 0; at < apiKey.length; at += 1) {
      for (const other of alphabet.replace(apiKey.charAt(at), "")) {
        expect(parseApiKey(apiKey.slice(0, at) + other + apiKey.slice(at + 1))).toBeUndefined();
      }
    }
  });

  it.each([
    ["empty", () => ""],
    ["the prefix alone", () => "amr_"],
    ["another prefix", (key: string) => key.replace("amr_", "xyz_")],
    ["another case", (key: string) => key.toLowerCase()],
    ["a blank before", (key: string) => ` ${key}`],
    ["a line end after", (key: string) => `${key}\n`],
    ["one character less", (key: string) => key.slice(0, -1)],
    ["twice", (key: string) => `${key}, ${key}`],
    ["ten kilobytes", (key: string) => key.repeat(200)],
  ])("is turned away: %s", (_what, spoil) => {
    const { apiKey } = createApiKey(new Uint8Array(32).fill(0xab));
    expect(parseApiKey(spoil(apiKey))).toBeUndefined();
  });

  it.each([[0], [16], [33]])("is not made of %i bytes of chance", (count) => {
    expect(() => createApiKey(new Uint8Array(count))).toThrow(RangeError);
  });
});

function oneBit(bit: number): Uint8Array {
  const bytes = new Uint8Array(32);
  bytes[bit >> 3] = 1 << (bit & 7);
  return bytes;
}
