import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failureOf, guardedApi } from "./guarded-api.ts";
import { answerOf, type RawServer, startRawServer } from "./raw-server.ts";

// The categories are those of the JSON test suite by Nicolas Seriot (RFC 8259): must be refused, must be taken, may be either.

const api = guardedApi();
let server: RawServer;
let body: Buffer;
beforeAll(async () => {
  server = await startRawServer((socket) => void socket.write(answerOf(body)));
});
afterAll(async () => {
  api.close();
  await server.close();
});

async function answered(bytes: string | Buffer) {
  body = Buffer.from(bytes);
  return api.call({ projectId: 1, origin: server.origin, path: "/1" });
}
const valued = (value: string) => `{"a":${value}}`;
const quoted = (text: string) => `{"a":"${text}"}`;
const bytes = (...values: number[]) => Buffer.concat([Buffer.from('{"a":"'), Buffer.from(values), Buffer.from('"}')]);

const numbers = [
  ..."01 -01 00 -00 1. .1 -.1 1.e3 1e 1e+ 1E- 1eE2 0e 0.3e+ 2.e-3 + +1 ++1 - -- 1+2 - 1_000 0x1 0b1 1. ".split(" "),
  ..."Infinity -Infinity NaN -NaN +NaN inf -inf 1a 1f 1n ١ １ 9.e+ 1.2.3 1e2e3 1e+-2 -foo -1x 0.1.2".split(" "),
];
const strings = [
  ...["\n", "\t", "\r", "\0", "\x1f", "\b"],
  ...["\\x41", "\\a", "\\'", "\\0", "\\", "\\u", "\\u1", "\\u12", "\\u123", "\\u00g0", "\\U0041", "\\\n", "\\u{41}"],
];
const structures = [
  ...["{", "}", "{]", "[}", "{{}}", "{}}", "{}{}", "{},", ",{}", "{,}", "{:}", '{"a"}', '{"a":}', '{"a",}', '{:"a"}', '{"a"::1}'],
  ...[
    '{"a":1,}',
    '{"a":1,,"b":2}',
    '{,"a":1}',
    '{"a" "b"}',
    '{"a":1 "b":2}',
    '{"a":"b"/**/}',
    '{"a":1}#',
    '{"a":1}//',
    '{"a":1}/**/',
  ],
  ...[
    "{a:1}",
    "{'a':1}",
    "{\"a\":'b'}",
    "{1:1}",
    "{null:1}",
    '{"a":1',
    '{"a":[1',
    '{"a":"b',
    '{"a":tru}',
    '{"a":TRUE}',
    '{"a":nul}',
  ],
  ...[
    '{"a":undefined}',
    '{"a":[1,]}',
    '{"a":[,1]}',
    '{"a":[1,,2]}',
    '{"a":[1 2]}',
    '{"a":1}x',
    '"a":1',
    "<null>",
    "*",
    "'a'",
    "\u00e9",
  ],
  ...['\u00a0{"a":1}', '\u2060{"a":1}', '\f{"a":1}', '\v{"a":1}', '{"a":1}\u2028', '{"a":\u00a01}', "\uFEFF", "\\u007B\\u007D"],
];

describe("no JSON, and not stored", () => {
  it.each([...numbers.map(valued), ...strings.map(quoted), ...structures, "", " ", "\r\n\t", "\0"])("%j", async (text) => {
    expect(failureOf(await answered(text))).toMatchObject({ detail: "not_json", status: 200, excerpt: text });
  });

  it.each<[string, Buffer]>([
    ["a lone continuation byte", bytes(0x80)],
    ["a cut character at the end of the string", bytes(0xe2, 0x82)],
    ["an overlong slash, 2 bytes", bytes(0xc0, 0xaf)],
    ["an overlong slash, 3 bytes", bytes(0xe0, 0x80, 0xaf)],
    ["an overlong NUL", bytes(0xc0, 0x80)],
    ["an encoded surrogate", bytes(0xed, 0xa0, 0x80)],
    ["an encoded pair of surrogates (CESU-8)", bytes(0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80)],
    ["a code point above U+10FFFF", bytes(0xf4, 0x90, 0x80, 0x80)],
    ["a lead byte that nothing begins with", bytes(0xff)],
    ["Latin-1", bytes(0xe9)],
    ["UTF-16, little-endian, marked", Buffer.from('\uFEFF{"a":1}', "utf16le")],
    ["UTF-16, big-endian, marked", Buffer.from('\uFEFF{"a":1}', "utf16le").swap16()],
    ["gzip", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3])],
  ])("%s: not UTF-8", async (_name, wrong) => {
    expect(failureOf(await answered(wrong))).toMatchObject({ detail: "not_utf8", status: 200 });
  });

  it.each([Buffer.from('{"a":1}', "utf16le"), Buffer.from('{"a":1}', "utf16le").swap16()])(
    "UTF-16 without a mark",
    async (wide) => {
      expect(failureOf(await answered(wide)).detail).toBe("not_json");
    },
  );

  it.each(["null", "true", "false", "0", "-1.5e3", '"a"', "[]", '[{"a":1}]', ' "" ', "[[[[]]]]"])(
    "%s: no object",
    async (text) => {
      expect(failureOf(await answered(text)).detail).toBe("not_an_object");
    },
  );

  it.each([
    ["10 MB of digits", valued("1".repeat(10_000_000))],
    ["a string of 5 MB", quoted("x".repeat(5_000_000))],
    ["200,000 keys", `{${Array.from({ length: 200_000 }, (_, key) => `"${key}":0`).join()}}`],
    ["200,000 levels", "[".repeat(200_000) + "]".repeat(200_000)],
  ])("%s: too large", async (_name, text) => {
    expect(failureOf(await answered(text)).detail).toBe("body_too_large");
  });

  it.each([
    ["100,000 levels of arrays", "[".repeat(100_000)],
    ["20,000 levels of objects", `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`],
  ])("%s: too deep, and nothing that reads it later can be broken by it", async (_name, text) => {
    expect(failureOf(await answered(text)).detail).toBe("too_deep");
  });
});

describe("JSON, and stored to the letter", () => {
  it.each([
    ..."0 -0 1 -1 0.1 1e5 1E5 1e+5 1E-5 123.456e78 -1.0 1e999 -1e999 1e-999 9007199254740993 0e1 100000000000000000000".split(
      " ",
    ),
    ...[
      '""',
      '"\\"\\\\\\/\\b\\f\\n\\r\\t"',
      '"\\u0000"',
      '"\\uD83D\\uDE00"',
      '"\u007f"',
      '"\u2028\u2029"',
      '"\uFFFF"',
      '"\u{10FFFF}"',
    ],
    ...['"\\ud800"', '"\\udc00\\ud800"', '"\\uD888\\u1234"', '"\u0800"', '"/"', '"a/*b*/c"', '"\uFEFF"'],
    ...["null", "true", "false", "[]", "{}", "[1,2,3]", '[null,true,"a",{"b":[]}]', "[[],[[]]]", " [ 1 , 2 ] ", '{"a":{"a":{}}}'],
    `"${"9".repeat(100_000)}"`,
    "9".repeat(40),
  ])("a value %s", async (value) => {
    expect(await answered(valued(value))).toMatchObject({ ok: true, text: valued(value) });
  });

  it.each([
    "{}",
    '\r\n\t {"a" : 1 }\r\n\t ',
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"":0}',
    '{"\\u0000":0}',
    '{"\u00e9":0}',
    '{"__proto__":{"polluted":true}}',
    '{"\\u005f\\u005fproto__":{"polluted":true}}',
    '{"constructor":{"prototype":{"polluted":true}}}',
    '{"toString":1,"hasOwnProperty":2}',
    '{"name":"line\\r\\nbreak \\u001b[31m red"}',
  ])("an object %s", async (text) => {
    expect(await answered(text)).toMatchObject({ ok: true, text });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
