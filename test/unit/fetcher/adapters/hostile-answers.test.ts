import type { Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import type { ErrorDetail } from "../../../../services/fetcher/core/results.ts";
import { type HostileName, hostileAnswers, hostileBody, hostileGroups } from "../../../support/metadata-api/hostile-answers.ts";
import { writeHostile } from "../../../support/metadata-api/hostile-writer.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { failureOf, guardedApi } from "./guarded-api.ts";
import { answerOf, type RawAnswer, type RawServer, startRawServer } from "./raw-server.ts";

const timeoutMs = 400;
const api = guardedApi({ timeoutMs });
const body = hostileBody;
const head = (status: string, ...headers: string[]) => `${[`HTTP/1.1 ${status}`, ...headers].join("\r\n")}\r\n\r\n`;

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

const answering = (name: HostileName) => (socket: Socket) => writeHostile(socket, hostileAnswers[name]);
const names = (group: keyof typeof hostileGroups) => Object.keys(hostileGroups[group]) as HostileName[];

it.each(names("notHttp"))("%s breaks the protocol: it fails the token and drops the connection", async (name) => {
  const { result, closes } = await callOnce(answering(name));
  expect(failureOf(result).detail).toBe("protocol");
  await closes();
});

it.each(names("tooManyHeaders"))("%s is too much of a header: it fails the token and drops the connection", async (name) => {
  const { result, closes } = await callOnce(answering(name));
  expect(failureOf(result).detail).toBe("headers_too_large");
  await closes();
});

it.each(names("endless"))("%s does not end in time: it fails the token and drops the connection", async (name) => {
  const { result, closes } = await callOnce(answering(name));
  expect(failureOf(result).detail).toBe("timeout");
  expect(result.durationMs).toBeGreaterThanOrEqual(timeoutMs - 1);
  await closes();
});

it.each<[HostileName, number | null, readonly ErrorDetail[]]>([
  ["closed-without-a-word", null, ["reset"]],
  ["reset-without-a-word", null, ["reset"]],
  ["body-shorter-than-its-length-then-closed", 200, ["reset", "protocol"]],
  ["chunk-cut-then-closed", 200, ["reset", "protocol"]],
  ["reset-in-mid-body", 200, ["reset"]],
])("%s breaks the connection and fails the token", async (name, status, details) => {
  const { result } = await callOnce(answering(name));
  expect(failureOf(result).status).toBe(status);
  expect(details).toContain(failureOf(result).detail);
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

it.each(names("accepted"))("%s is unusual, but says all it has to: it is taken", async (name) => {
  const { result } = await callOnce(answering(name));
  expect(result).toMatchObject({ ok: true, text: hostileBody });
});

describe("the body cap", () => {
  it.each<[HostileName, ErrorDetail]>([
    ["body-of-2-mb", "body_too_large"],
    ["chunks-for-ever", "body_too_large"],
    ["chunk-extension-for-ever", "body_too_large"],
    ["500-with-a-body-for-ever", "unexpected_status"],
  ])("ends %s, and drops the connection", async (name, detail) => {
    const { result, closes } = await callOnce(answering(name));
    expect(failureOf(result).detail).toBe(detail);
    expect(result.bodyBytes).toBeLessThan(262_144 + 131_072);
    await closes();
  });

  it("takes a body of exactly 256 KiB", async () => {
    const text = `{"a":"${"x".repeat(262_144 - 8)}"}`;
    const { result } = await callOnce(writes(answerOf(text)));
    expect(result).toMatchObject({ ok: true, text, bodyBytes: 262_144 });
  });
});

describe("a chunk extension of 1 MB", () => {
  const chunkSize = body.length.toString(16);
  const begin = `${head("200 OK", "transfer-encoding: chunked")}${chunkSize};x=${"y".repeat(1_048_576)}`;

  it("is dropped without a word when the body comes with it: the token has its metadata", async () => {
    // Time stands still, so that this call cannot be one that lasts, however busy this machine is.
    const quick = guardedApi({ clock: { nowMs: Date.now, monotonicMs: () => 0 } });
    await withServer(writes(`${begin}\r\n${body}\r\n0\r\n\r\n`), async ({ origin }) => {
      const result = await quick.call({ projectId: 1, origin, path: "/42" });
      expect(result).toMatchObject({ ok: true, text: body, bodyBytes: body.length });
    });
    quick.close();
  });

  it("is cut off as too large when nothing comes of it, and not at the deadline", async () => {
    const patient = guardedApi({ timeoutMs: 60_000 });
    await withServer(writes(begin), async ({ origin }) => {
      const result = await patient.call({ projectId: 1, origin, path: "/42" });
      expect(failureOf(result)).toMatchObject({ detail: "body_too_large", status: 200, bodyBytes: 0 });
    });
    expect([patient.underWay, patient.idleConnections]).toEqual([0, 0]);
  });
});

describe("what is not asked for", () => {
  it("does not decode compressed bytes", async () => {
    const { result } = await callOnce(
      writes(answerOf(Buffer.from([0x1f, 0x8b, 8, 0, 0]), "200 OK", "content-encoding: gzip\r\n")),
    );
    expect(failureOf(result)).toMatchObject({ detail: "not_utf8", status: 200 });
  });
});
