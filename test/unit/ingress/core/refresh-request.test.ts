import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRefreshRequest } from "../../../../services/ingress/core/refresh-request.ts";

const collection = `0x${"ab".repeat(20)}`;
const largest = (2n ** 256n - 1n).toString();

function problems(body: unknown): [string, string][] {
  const parsed = parseRefreshRequest(body);
  return parsed.ok ? [] : (parsed.refusal.body.details ?? []).map(({ field, rule }) => [field, rule]);
}

const withIds = (tokenIds: unknown) => problems({ collection_address: collection, token_ids: tokenIds });

describe("a refresh request", () => {
  it("is read with its address in lower case and its tokens in their order", () => {
    const parsed = parseRefreshRequest({ collection_address: `0x${"AB".repeat(20)}`, token_ids: ["2", "1", largest] });
    expect(parsed).toEqual({ ok: true, request: { collectionAddress: collection, tokenIds: ["2", "1", largest] } });
  });

  it.each<[string, unknown, [string, string][]]>([
    ["nothing", undefined, [["body", "type"]]],
    ["null", null, [["body", "type"]]],
    ["a text", "x", [["body", "type"]]],
    ["an array", [], [["body", "type"]]],
    [
      "an empty object",
      {},
      [
        ["collection_address", "type"],
        ["token_ids", "type"],
      ],
    ],
    ["an unknown field", { collection_address: collection, token_ids: ["1"], tokens: [] }, [["tokens", "unknown_field"]]],
    ["a number for an address", { collection_address: 1, token_ids: ["1"] }, [["collection_address", "type"]]],
    [
      "an address too short",
      { collection_address: collection.slice(0, 41), token_ids: ["1"] },
      [["collection_address", "address"]],
    ],
    ["an address too long", { collection_address: `${collection}0`, token_ids: ["1"] }, [["collection_address", "address"]]],
    ["an address without 0x", { collection_address: collection.slice(2), token_ids: ["1"] }, [["collection_address", "address"]]],
    [
      "an address with a line end",
      { collection_address: `${collection}\n`, token_ids: ["1"] },
      [["collection_address", "address"]],
    ],
  ])("with %s is refused", (_name, body, expected) => {
    expect(problems(body)).toEqual(expected);
  });

  it("with a prototype among its fields is refused for it", () => {
    const body: unknown = JSON.parse('{"__proto__":{"token_ids":["1"]}}');
    expect(problems(body)).toContainEqual(["__proto__", "unknown_field"]);
  });

  it.each<[string, unknown, [string, string]]>([
    ["no ids", [], ["token_ids", "min_items"]],
    ["1001 ids", Array.from({ length: 1_001 }, (_, index) => String(index)), ["token_ids", "max_items"]],
    ["a text for the list", "1,2", ["token_ids", "type"]],
    ["an object for the list", { length: 1, 0: "1" }, ["token_ids", "type"]],
    ["a number for an id", [1], ["token_ids[0]", "type"]],
    ["null for an id", ["1", null], ["token_ids[1]", "type"]],
    ["a nested list", ["1", ["2"]], ["token_ids[1]", "type"]],
    ["an empty id", [""], ["token_ids[0]", "token_id"]],
    ["a negative id", ["-1"], ["token_ids[0]", "token_id"]],
    ["a signed id", ["+1"], ["token_ids[0]", "token_id"]],
    ["a leading zero", ["01"], ["token_ids[0]", "token_id"]],
    ["a fraction", ["1.0"], ["token_ids[0]", "token_id"]],
    ["an exponent", ["1e3"], ["token_ids[0]", "token_id"]],
    ["hexadecimal", ["0x1"], ["token_ids[0]", "token_id"]],
    ["a blank", [" 1"], ["token_ids[0]", "token_id"]],
    ["a line end", ["1\n"], ["token_ids[0]", "token_id"]],
    ["other scripts' digits", ["١"], ["token_ids[0]", "token_id"]],
    ["full-width digits", ["１"], ["token_ids[0]", "token_id"]],
    ["2^256", [(2n ** 256n).toString()], ["token_ids[0]", "token_id"]],
    ["79 digits", ["1".repeat(79)], ["token_ids[0]", "token_id"]],
    ["a thousand digits", ["1".repeat(1_000)], ["token_ids[0]", "token_id"]],
    ["a duplicate", ["7", "8", "7"], ["token_ids[2]", "duplicate"]],
  ])("with %s is refused", (_name, tokenIds, expected) => {
    expect(withIds(tokenIds)).toEqual([expected]);
  });

  it.each<[string, unknown]>([
    ["one id", ["0"]],
    ["1000 ids", Array.from({ length: 1_000 }, (_, index) => String(index))],
    ["the greatest id", [largest]],
    ["78 digits", [`1${"0".repeat(77)}`]],
    ["ids that differ by one beyond 2^53", ["9007199254740993", "9007199254740992"]],
  ])("with %s is taken", (_name, tokenIds) => {
    expect(withIds(tokenIds)).toEqual([]);
  });

  it("takes exactly the canonical decimals of 256 bits", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 260n }), (value) => {
        expect(withIds([value.toString()]).length === 0).toBe(value < 2n ** 256n);
      }),
    );
  });

  it("tells of a thousand duplicates in a few lines", () => {
    const parsed = parseRefreshRequest({ collection_address: collection, token_ids: Array.from({ length: 1_000 }, () => "7") });
    expect(parsed.ok ? [] : parsed.refusal.body.details).toHaveLength(20);
    expect(JSON.stringify(parsed)).toContain("token_ids[1]: is the same as token_ids[0]: 7, and 998 more");
  });

  it("names duplicates by place and id", () => {
    const parsed = parseRefreshRequest({ collection_address: collection, token_ids: ["7", "8", "7", "8"] });
    expect(parsed).toMatchObject({
      refusal: {
        status: 400,
        body: {
          code: "invalid_request",
          details: [
            { field: "token_ids[2]", message: "is the same as token_ids[0]: 7" },
            { field: "token_ids[3]", message: "is the same as token_ids[1]: 8" },
          ],
        },
      },
    });
  });

  it("stays short, and repeats nothing unchecked, when everything is wrong", () => {
    const tokenIds = Array.from({ length: 1_000 }, () => `<script>\u001b[31m${"x".repeat(50)}`);
    const parsed = parseRefreshRequest({ collection_address: "<script>", token_ids: tokenIds });
    const text = JSON.stringify(parsed);
    expect(text.length).toBeLessThan(10_000);
    expect(text).not.toMatch(/script|x{50}/);
    expect(text).toContain("and 1000 more");
  });
});
