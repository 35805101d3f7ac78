import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { refusalCodes } from "../../services/common/http/answer.ts";
import { refusalSchema } from "../../services/common/http/openapi.ts";
import { exchange } from "../unit/common/http/served-app.ts";
import { newAddress, setUpRegistry } from "./registry-service.ts";

let setUp: Awaited<ReturnType<typeof setUpRegistry>>;
beforeAll(async () => {
  setUp = await setUpRegistry();
});
afterAll(() => setUp?.close());

const path = "/v1/projects";
const token = "Authorization: Bearer dev-admin-token";
const json = "Content-Type: application/json";
const good = () => JSON.stringify({ name: "Game", owner_address: newAddress() });

const raw = (first: string, lines: readonly string[] = []) =>
  [`${first}\r\nHost: a`, token, json, ...lines, "Connection: close", "", ""].join("\r\n");

function post(body: string | Buffer, lines: readonly string[] = [json]): Buffer {
  const bytes = Buffer.from(body);
  const head = [
    `POST ${path} HTTP/1.1`,
    "Host: a",
    token,
    ...lines,
    `Content-Length: ${bytes.length}`,
    "Connection: close",
    "",
    "",
  ];
  return Buffer.concat([Buffer.from(head.join("\r\n"), "latin1"), bytes]);
}

it.each<[string, () => string | Buffer, number]>([
  ["J1 a body of 200 KB", () => post(`"${"a".repeat(200_000)}"`), 413],
  ["J2 a gzip bomb", () => post(gzipSync(Buffer.alloc(5_000_000)), [json, "Content-Encoding: gzip"]), 415],
  ["J5 a prototype key", () => post(`{"__proto__":{"x":1},${good().slice(1)}`), 400],
  ["J6 a primitive", () => post("5"), 400],
  ["J8 UTF-16", () => post(Buffer.from(`\uFEFF${good()}`, "utf16le")), 400],
  ["J10 two lengths", () => raw(`POST ${path} HTTP/1.1`, ["Content-Length: 2", "Content-Length: 2"]), 400],
  ["J11 length and chunks", () => raw(`POST ${path} HTTP/1.1`, ["Content-Length: 2", "Transfer-Encoding: chunked"]), 400],
  ["J12 an unknown coding", () => raw(`POST ${path} HTTP/1.1`, ["Transfer-Encoding: xchunked"]), 400],
  ["J14 a header of 20 KB", () => raw(`GET ${path} HTTP/1.1`, [`X-A: ${"a".repeat(20_000)}`]), 431],
  ["J17 an odd expectation", () => post(good(), [json, "Expect: miracles"]), 417],
  ["J18 an array", () => post("[]"), 400],
  ["J19 25,000 levels", () => post(`{"name":${"[".repeat(25_000)}${"]".repeat(25_000)}}`), 400],
  ["J21 text/plain", () => post(good(), ["Content-Type: text/plain"]), 415],
  ["J23 no body", () => post(""), 400],
  ["J24 two Hosts", () => raw(`GET ${path} HTTP/1.1`, ["Host: b"]), 400],
  ["J26 an absolute target", () => raw(`GET http://evil.com${path} HTTP/1.1`), 400],
  ["J27 TRACE", () => raw(`TRACE ${path} HTTP/1.1`), 405],
  ["two tokens, one of them good", () => raw(`GET ${path} HTTP/1.1`, ["Authorization: Bearer other"]), 401],
])(
  "%s is answered once, in the form of every refusal, without the admin token in it, and registers nothing",
  async (_name, build, expected) => {
    const { cassandra, registry } = setUp;
    const text = await exchange(Number(new URL(registry.url).port), build());
    const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));
    expect(statuses, text.slice(0, 500)).toEqual([expected]);
    const body = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
    expect(refusalSchema(refusalCodes).parse(body)).toEqual(body);
    expect(text).not.toMatch(/dev-admin-token|evil\.com|\.ts:\d/);
    expect(await cassandra.read("SELECT project_id FROM projects", [])).toEqual([]);
  },
);

it("logs nothing of what was sent to it", () => {
  expect(JSON.stringify(setUp.registry.context.logs)).not.toMatch(/dev-admin-token|evil\.com|miracles/);
});
