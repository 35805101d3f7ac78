import type { Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { waitFor } from "../../../support/wait-for.ts";
import { failureOf, guardedApi } from "./guarded-api.ts";
import { answerOf, type RawAnswer, type RawServer, startRawServer } from "./raw-server.ts";

const timeoutMs = 400;
const api = guardedApi({ timeoutMs });
const body = '{"name":"a"}';
const head = (status: string, ...headers: string[]) => `${[`HTTP/1.1 ${status}`, ...headers].join("\r\n")}\r\n\r\n`;
const ok = (...headers: string[]) => head("200 OK", ...headers);
const okBody = (...headers: string[]) => ok(...headers, `content-length: ${body.length}`) + body;
const chunked = "transfer-encoding: chunked";

afterAll(() => {
  api.close();
  // Nothing is forgotten and nothing is counted twice, whatever the servers did.
  expect(api.underWay).toBe(0);
  expect(api.heldBytes).toBe(0);
});

async function withServer<T>(answer: RawAnswer, use: (server: RawServer) => Promise<T>): Promise<T> {
  const server = await startRawServer(answer);
  try {
    return await use(server);
  } finally {
    await server.close();
  }
}

const writes = (bytes: string | Buffer) => (socket: Socket) => void socket.write(bytes);
const writesAndEnds = (bytes: string | Buffer) => (socket: Socket) => void socket.end(bytes);
const callOnce = (answer: RawAnswer) =>
  withServer(answer, async (server) => {
    const result = await api.call({ projectId: 1, origin: server.origin, path: "/42" });
    return {
      result,
      closes: () =>
        waitFor(
          "the connection is dropped",
          () => server.openCount,
          (open) => open === 0,
        ),
    };
  });

describe("an answer that breaks the protocol fails the token and drops the connection", () => {
  it.each<[string, string | Buffer]>([
    ["HTTP/0.9 text", "hello\n"],
    ["an HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["HTTP/3.7", `HTTP/3.7 200 OK\r\ncontent-length: 12\r\n\r\n${body}`],
    ["a status of two digits", head("99 X", "content-length: 12") + body],
    ["a status of four digits", head("1000 X", "content-length: 12") + body],
    ["bare line feeds", `HTTP/1.1 200 OK\ncontent-length: 12\n\n${body}`],
    ["a negative length", ok("content-length: -5") + body],
    ["a length with a sign", ok("content-length: +2") + body],
    ["a chunk size that is no number", `${ok(chunked)}ZZ\r\n{}\r\n`],
    ["a chunk size beyond all numbers", `${ok(chunked)}FFFFFFFFFFFFFFFFFF\r\n{}\r\n`],
    ["transfer-encoding: identity", okBody("transfer-encoding: identity")],
    ["a NUL in a header", okBody("x: a\0b")],
    ["a folded header", okBody("x: a\r\n b")],
    ["a blank before the colon", okBody("x : a")],
    ["an SSH banner", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["a TLS alert", Buffer.from([0x15, 3, 1, 0, 2, 2, 40])],
    ["a Redis error", "-ERR wrong number of arguments\r\n"],
    ["a length beyond all numbers", ok("content-length: 99999999999999999999") + body],
    ["the same length twice", okBody("content-length: 12")],
    ["two different lengths", okBody("content-length: 13")],
    ["a length and chunks", `${ok(chunked, "content-length: 12")}c\r\n${body}\r\n0\r\n\r\n`],
    ["a thousand times 100 Continue", head("100 Continue").repeat(1_000) + okBody()],
    ["103 Early Hints without end", head("103 Early Hints", "link: <x>").repeat(1_000) + okBody()],
    ["a change of protocol", head("101 Switching Protocols", "connection: upgrade", "upgrade: x")],
    ["200,000 chunks of one byte", `${ok(chunked)}${"1\r\n{\r\n".repeat(200_000)}0\r\n\r\n`],
  ])("%s", async (_name, bytes) => {
    const { result, closes } = await callOnce(writes(bytes));
    expect(failureOf(result).detail).toBe("protocol");
    await closes();
  });

  it.each<[string, string]>([
    ["one header of 20 KB", okBody(`x: ${"a".repeat(20_000)}`)],
    ["20 KB of headers", okBody(...Array.from({ length: 1_000 }, (_, index) => `x-${index}: 0123456789abcdef`))],
    ["5,000 trailers", `${ok(chunked)}c\r\n${body}\r\n0\r\n${"x-t: 1234567890\r\n".repeat(5_000)}\r\n`],
  ])("%s", async (_name, bytes) => {
    const { result, closes } = await callOnce(writes(bytes));
    expect(failureOf(result).detail).toBe("headers_too_large");
    await closes();
  });
});

describe("an answer that does not end in time fails the token and drops the connection", () => {
  it.each<[string, RawAnswer]>([
    ["HTTP/1.0 without a length, kept open", writes(`HTTP/1.0 200 OK\r\n\r\n${body}`)],
    ["a body that is shorter than its length", writes(ok("content-length: 99") + body)],
    ["no length, never closed", writes(ok() + body)],
    ["chunks without an end", writes(`${ok(chunked)}c\r\n${body}\r\n`)],
    ["an unknown transfer-encoding, never closed", writes(ok("transfer-encoding: xchunked") + body)],
    ["nothing at all", () => {}],
    ["headers, a byte every 30 ms", (socket) => drip(socket, okBody(), 30)],
    ["a body, a byte every 60 ms", (socket) => drip(socket, okBody(), 60, ok("content-length: 12").length)],
  ])("%s", async (_name, answer) => {
    const { result, closes } = await callOnce(answer);
    expect(failureOf(result).detail).toBe("timeout");
    expect(result.durationMs).toBeGreaterThanOrEqual(timeoutMs - 1);
    await closes();
  });

  function drip(socket: Socket, text: string, everyMs: number, at = 0): void {
    socket.write(text.slice(0, at));
    let sent = at;
    const timer = setInterval(() => {
      socket.write(text.slice(sent, sent + 1));
      sent += 1;
    }, everyMs);
    socket.on("close", () => clearInterval(timer));
  }
});

describe("a connection that breaks fails the token", () => {
  it.each<[string, RawAnswer]>([
    ["closed without a word", (socket) => void socket.end()],
    ["reset without a word", (socket) => void socket.resetAndDestroy()],
    ["closed in the middle of the body", writesAndEnds(ok("content-length: 99") + body)],
    ["closed in the middle of a chunk", writesAndEnds(`${ok(chunked)}ff\r\n${body}`)],
    [
      "reset in the middle of the body",
      (socket) => void socket.write(ok("content-length: 99") + body, () => socket.resetAndDestroy()),
    ],
  ])("%s", async (_name, answer) => {
    const { result } = await callOnce(answer);
    expect(["reset", "protocol"]).toContain(failureOf(result).detail);
    expect(failureOf(result).status).toBe(_name.includes("middle") ? 200 : null);
  });
});

describe("a status other than 200 is the answer, whatever comes after it", () => {
  it.each<[number, string, RawAnswer]>([
    [204, "unexpected_status", writes(head("204 No Content", "content-length: 12") + body)],
    [206, "unexpected_status", writes(answerOf(body, "206 Partial Content"))],
    [304, "unexpected_status", writes(head("304 Not Modified"))],
    [301, "redirect", writes(answerOf("", "301 Moved", "location: http://10.0.0.1/\r\n"))],
    [302, "redirect", writes(answerOf("", "302 Found", "location: http://169.254.169.254/latest/meta-data\r\n"))],
    [303, "redirect", writes(answerOf("", "303 See Other", "location: /42\r\n"))],
    [307, "redirect", writes(answerOf("", "307 Temporary", "location: http://127.0.0.1:1/\r\n"))],
    [308, "redirect", writes(answerOf("", "308 Permanent", "location: file:///etc/passwd\r\n"))],
    [404, "unexpected_status", writes(answerOf("no such token", "404 Not Found"))],
    [999, "unexpected_status", writes(answerOf("blocked", "999 Request denied"))],
    [429, "rate_limited", writes(head("429 Too Many", "retry-after: 7", "content-length: 99"))],
    [503, "service_unavailable", writes(head("503 Unavailable", "content-length: 9000000") + "x".repeat(400_000))],
    [500, "unexpected_status", writesAndEnds(`${head("500 Oops", "content-length: 99")}half an answer`)],
  ])("%i (%s)", async (status, detail, answer) => {
    const { result } = await callOnce(answer);
    expect(failureOf(result)).toMatchObject({ status, detail });
  });

  it("keeps the first 4 KiB of what it says, and what it asks for", async () => {
    const { result } = await callOnce(writes(answerOf("é".repeat(10_000), "429 Too Many Requests", "retry-after: 7\r\n")));
    expect(failureOf(result)).toMatchObject({ excerpt: "é".repeat(2_048), retryAfterMs: 7_000, bodyBytes: 20_000 });
  });

  it("says that nothing was said when the body is empty, and that nothing came when there was no answer", async () => {
    const empty = await callOnce(writes(answerOf("", "404 Not Found")));
    expect(failureOf(empty.result).excerpt).toBe("");
    const none = await callOnce((socket) => void socket.end());
    expect(failureOf(none.result).excerpt).toBeNull();
  });
});

describe("an unusual answer that says all it has to is taken", () => {
  it.each<[string, RawAnswer]>([
    ["no reason phrase", writes(`HTTP/1.1 200\r\ncontent-length: 12\r\n\r\n${body}`)],
    ["103 Early Hints first", writes(head("103 Early Hints", "link: <x>") + okBody())],
    ["a body that ends with the connection", writesAndEnds(ok("connection: close") + body)],
    ["chunks, one of them with a long extension", writes(`${ok(chunked)}c;${"x".repeat(100_000)}\r\n${body}\r\n0\r\n\r\n`)],
    ["1,000 short headers", writes(okBody(...Array.from({ length: 1_000 }, () => "x-a: 1")))],
    ["headers called __proto__ and constructor", writes(okBody("__proto__: x", "constructor: y"))],
    ["Latin-1 in a header", writes(Buffer.from(okBody("x: \u00e9"), "latin1"))],
    ["an unknown content-encoding that changed nothing", writes(okBody("content-encoding: foo"))],
    ["more bytes than announced", writes(`${okBody()}garbage`)],
  ])("%s", async (_name, answer) => {
    const { result } = await callOnce(answer);
    expect(result).toMatchObject({ ok: true, text: body });
  });
});

describe("the body cap", () => {
  it.each([
    ["announced", writes(answerOf(`{"a":"${"x".repeat(2_000_000)}"}`))],
    ["in chunks without an end", (socket: Socket) => void writeForEver(socket)],
  ])("stops a body of 2 MB, %s, and drops the connection", async (_name, answer) => {
    const { result, closes } = await callOnce(answer);
    expect(failureOf(result)).toMatchObject({ detail: "body_too_large", status: 200 });
    expect(result.bodyBytes).toBeLessThan(262_144 + 131_072);
    await closes();
  });

  it("takes a body of exactly 256 KiB", async () => {
    const text = `{"a":"${"x".repeat(262_144 - 8)}"}`;
    const { result } = await callOnce(writes(answerOf(text)));
    expect(result).toMatchObject({ ok: true, text, bodyBytes: 262_144 });
  });

  function writeForEver(socket: Socket): void {
    const piece = "x".repeat(16_000);
    const more = () => {
      while (!socket.destroyed && socket.write(`3e80\r\n${piece}\r\n`));
    };
    socket.write(ok(chunked));
    socket.on("drain", more);
    more();
  }
});

describe("what is not asked for", () => {
  it("does not decode compressed bytes", async () => {
    const { result } = await callOnce(
      writes(answerOf(Buffer.from([0x1f, 0x8b, 8, 0, 0]), "200 OK", "content-encoding: gzip\r\n")),
    );
    expect(failureOf(result)).toMatchObject({ detail: "not_utf8", status: 200 });
  });
});
