import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { messageOf } from "../../../../services/common/errors.ts";
import { exchange, type ServedApp, serveApp } from "./served-app.ts";

const maxBytes = 4_096;
let app: ServedApp;

beforeAll(async () => {
  app = await serveApp([
    {
      method: "POST",
      path: "/",
      handle: async (request) => {
        const body = await request.readJson(maxBytes);
        return body.ok ? { status: 200, body: { type: typeof body.value } } : body.refusal;
      },
    },
  ]);
});
afterAll(() => app.server.close(0));

const json = "application/json";
const post = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = { "content-type": json }) => {
  const response = await fetch(app.url, { method: "POST", headers, body });
  return { status: response.status, code: ((await response.json()) as { code?: string }).code };
};

it.each([json, "Application/JSON", "application/json;charset=utf-8", 'application/json; charset="UTF-8"'])(
  "reads a body of type %s",
  async (type) => {
    expect(await post("{}", { "content-type": type })).toEqual({ status: 200 });
  },
);

it.each([
  "text/plain",
  "application/vnd.api+json",
  "application/json; charset=utf-16",
  "application/json; charset=unheard-of",
  "application/json; version=2",
  "application/x-www-form-urlencoded",
  "",
])("refuses a body of type '%s'", async (type) => {
  expect(await post("{}", type === "" ? {} : { "content-type": type })).toEqual({ status: 415, code: "unsupported_media_type" });
});

it("refuses two content types", async () => {
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${json}\r\nContent-Type: ${json}\r\nContent-Length: 2\r\n`;
  expect(await exchange(app.port, `${head}Connection: close\r\n\r\n{}`)).toMatch(/^HTTP\/1\.1 415 /);
});

it.each(["gzip", "br", "gzip, gzip", "zstd"])("refuses the encoding %s: a small body could become any size", async (encoding) => {
  const bomb = Uint8Array.from(gzipSync("0".repeat(1_000_000)));
  expect(await post(bomb, { "content-type": json, "content-encoding": encoding })).toEqual({
    status: 415,
    code: "unsupported_media_type",
  });
});

it.each([
  ["nothing", ""],
  ["a truncated object", '{"a":'],
  ["a trailing comma", '{"a":1,}'],
  ["a comment", "{} // no"],
  ["NaN", '{"a":NaN}'],
  ["a byte order mark", "\uFEFF{}"],
  ["a prototype key", '{"__proto__":{"x":1}}'],
  ["a prototype key inside", '{"a":[{"__proto__":1}]}'],
  ["an escaped prototype key", '{"\\u005f\\u005fproto__":1}'],
])("refuses %s", async (_name, text) => {
  expect(await post(text)).toEqual({ status: 400, code: "invalid_request" });
});

it.each([
  ["invalid UTF-8", [0x22, 0xff, 0x22]],
  ["an overlong slash", [0x22, 0xc0, 0xaf, 0x22]],
  ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
])("refuses %s", async (_name, bytes) => {
  expect(await post(Uint8Array.from(bytes))).toEqual({ status: 400, code: "invalid_request" });
});

it.each([
  ["an array", "[]"],
  ["a text", '"x"'],
  ["null", "null"],
  ["the word __proto__ as a value", '{"a":"__proto__"}'],
  ["40 levels with an escape", `${"[".repeat(40)}"\\u0041"${"]".repeat(40)}`],
])("reads %s and leaves the judgement to the handler", async (_name, text) => {
  expect(await post(text)).toMatchObject({ status: 200 });
});

it("takes a body of exactly the cap and no byte more", async () => {
  const padded = (bytes: number) => `"${"a".repeat(bytes - 2)}"`;
  expect(await post(padded(maxBytes))).toEqual({ status: 200 });
  expect(await post(padded(maxBytes + 1))).toEqual({ status: 413, code: "payload_too_large" });
  expect(await post(padded(200_000))).toEqual({ status: 413, code: "payload_too_large" });
});

it("holds a body without a length to the same cap, and the connection stays usable", async () => {
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${json}\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const chunks = `1388\r\n${"a".repeat(5_000)}\r\n0\r\n\r\n`;
  const after = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${json}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`;
  expect(await exchange(app.port, head + chunks + after)).toMatch(/^HTTP\/1\.1 413 .*HTTP\/1\.1 200 /s);
});

it("tells a client that sends a megabyte too much what is wrong, each time", async () => {
  for (let time = 0; time < 20; time += 1) {
    expect(await post(`"${"a".repeat(1_200_000)}"`)).toEqual({ status: 413, code: "payload_too_large" });
  }
});

it("hangs up on a client that goes on sending a refused body", async () => {
  const patient = await serveApp(
    [
      {
        method: "POST",
        path: "/",
        handle: async (request) => {
          const body = await request.readJson(maxBytes);
          return body.ok ? { status: 200, body: {} } : body.refusal;
        },
      },
    ],
    { server: { requestTimeoutMs: 600_000 } },
  );
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Type: ${json}\r\nContent-Length: 100000000\r\n\r\n`;
  const ended = exchange(patient.port, Buffer.concat([Buffer.from(head), Buffer.alloc(20_000_000, "a")])).catch(messageOf);
  // Either the 413 arrived or the connection broke first; without the hang-up this would wait for ever.
  expect(await ended).toMatch(/^HTTP\/1\.1 413 |ECONNRESET|EPIPE/);
  await patient.server.close(0);
});

it.each([[40_000], [500]])("survives %i levels of nesting", async (depth) => {
  const deep = await serveApp([
    {
      method: "POST",
      path: "/",
      handle: async (request) => {
        const body = await request.readJson(128 * 1024);
        return body.ok ? { status: 200, body: {} } : body.refusal;
      },
    },
  ]);
  const nested = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const statuses = await Promise.all(
    [nested, `["\\u0041",${nested}]`].map(
      async (body) => (await fetch(deep.url, { method: "POST", headers: { "content-type": json }, body })).status,
    ),
  );
  await deep.server.close(0);
  for (const status of statuses) expect([200, 400]).toContain(status);
});
