import { describe, expect, it } from "vitest";
import { readMetadata } from "../../../../services/fetcher/core/metadata-body.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);
const bytes = (...values: number[]) => Uint8Array.from(values);
const inObject = (...values: number[]) => bytes(...utf8('{"a":"'), ...values, ...utf8('"}'));
const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${"}".repeat(depth - 1)}`;

describe("the body of a 200", () => {
  it.each([
    ["nothing", "", "not_json"],
    ["blanks", " \r\n\t ", "not_json"],
    ["null", "null", "not_an_object"],
    ["true", "true", "not_an_object"],
    ["a number", "5", "not_an_object"],
    ["a string", '"x"', "not_an_object"],
    ["an array", "[]", "not_an_object"],
    ["an array of objects", '[{"a":1}]', "not_an_object"],
    ["a byte order mark before an object", '\uFEFF{"a":1}', "not_json"],
    ["a raw NUL in a string", '{"a":"\u0000"}', "not_json"],
    ["a truncated object", '{"a":1', "not_json"],
    ["a trailing comma", '{"a":1,}', "not_json"],
    ["NaN", '{"a":NaN}', "not_json"],
    ["Infinity", '{"a":Infinity}', "not_json"],
    ["a comment", '{"a":1}//x', "not_json"],
    ["two objects", '{"a":1}{"a":2}', "not_json"],
    ["single quotes", "{'a':1}", "not_json"],
    ["HTML", "<!doctype html><html></html>", "not_json"],
    ["objects 65 deep", nested(65), "too_deep"],
    ["objects 20,000 deep", nested(20_000), "too_deep"],
    ["arrays 65 deep in an object", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, "too_deep"],
  ])("is refused when it is %s", (_name, text, detail) => {
    expect(readMetadata(utf8(text))).toEqual({ ok: false, detail });
  });

  it.each([
    ["a lone continuation byte", inObject(0x80), "not_utf8"],
    ["an overlong slash", inObject(0xc0, 0xaf), "not_utf8"],
    ["an encoded surrogate", inObject(0xed, 0xa0, 0x80), "not_utf8"],
    ["a cut character", inObject(0xe2, 0x82), "not_utf8"],
    ["a code point above U+10FFFF", inObject(0xf4, 0x90, 0x80, 0x80), "not_utf8"],
    ["Latin-1", inObject(0xe9), "not_utf8"],
    ["UTF-16 with a byte order mark", bytes(0xff, 0xfe, 0x7b, 0, 0x7d, 0), "not_utf8"],
    ["UTF-16 without one", bytes(0x7b, 0, 0x7d, 0), "not_json"],
    ["gzip", bytes(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3), "not_utf8"],
  ])("is refused when it is %s", (_name, body, detail) => {
    expect(readMetadata(body)).toEqual({ ok: false, detail });
  });

  it.each([
    ["an empty object", "{}"],
    ["blanks around", ' \n{"a": 1}\n'],
    ["duplicate keys", '{"a":1,"a":2}'],
    ["a number beyond doubles", '{"a":1e999}'],
    ["an integer beyond 2^53", '{"a":9007199254740993}'],
    ["a token id as a number", `{"id":${"9".repeat(40)}}`],
    ["minus zero", '{"a":-0}'],
    ["a long number", `{"a":${"1".repeat(100_000)}}`],
    ["a long string", `{"a":"${"x".repeat(200_000)}"}`],
    ["many keys", `{${Array.from({ length: 10_000 }, (_, key) => `"${key}":0`).join()}}`],
    ["a lone surrogate, escaped", '{"a":"\\ud800"}'],
    ["an escaped NUL", '{"a":"\\u0000"}'],
    ["a __proto__ key", '{"__proto__":{"admin":true}}'],
    ["an escaped __proto__ key", '{"\\u005f\\u005fproto__":1}'],
    ["a constructor path", '{"constructor":{"prototype":{"a":1}}}'],
    ["brackets and escaped quotes in a string", `{"a":"${'[{\\"'.repeat(100)}"}`],
    ["64 levels", nested(64)],
    ["emoji", '{"name":"🗡️ sword"}'],
  ])("is taken as it is, to the letter, when it is %s", (_name, text) => {
    expect(readMetadata(utf8(text))).toEqual({ ok: true, text });
  });

  it("leaves no trace of a __proto__ key", () => {
    readMetadata(utf8('{"__proto__":{"polluted":true}}'));
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
