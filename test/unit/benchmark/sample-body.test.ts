import { expect, it } from "vitest";
import { sampleBody } from "../../benchmark/programs/sample-body.ts";

it.each([
  ["1", 1_024],
  ["999999", 1_024],
  [String(2n ** 256n - 1n), 2_048],
])("the metadata of token %s is a JSON object of %d bytes that names it", (tokenId, bytes) => {
  const text = sampleBody(tokenId, bytes);
  expect(Buffer.byteLength(text)).toBe(bytes);
  expect(JSON.parse(text)).toMatchObject({ name: `Token #${tokenId}`, image: `https://cdn.example/${tokenId}.png` });
});

it("is the same each time and another for each token", () => {
  expect(sampleBody("7", 1_024)).toBe(sampleBody("7", 1_024));
  expect(sampleBody("7", 1_024)).not.toBe(sampleBody("8", 1_024));
});

it("refuses a size that is too small for what has to be in it", () => {
  expect(() => sampleBody("1", 64)).toThrow(RangeError);
});
