import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { messageOf } from "../../../../services/common/errors.ts";
import { type Answer, refuse } from "../../../../services/common/http/answer.ts";
import { exchange, type ServedApp, serveApp } from "./served-app.ts";

let app: ServedApp;
const slow = Promise.withResolvers<Answer>();

beforeAll(async () => {
  app = await serveApp([
    { method: "GET", path: "/v1/things/:thing_id", handle: ({ params }) => ({ status: 200, body: params }) },
    { method: "GET", path: "/v1/keys", handle: (request) => ({ status: 200, body: request.headers("x-api-key") }) },
    { method: "GET", path: "/v1/slow", handle: () => slow.promise },
    { method: "GET", path: "/v1/broken", handle: () => Promise.reject(new Error("secret detail")) },
    { method: "GET", path: "/v1/refused", handle: () => refuse(409, "conflict", "no", { headers: { "retry-after": "7" } }) },
    {
      method: "POST",
      path: "/v1/things",
      handle: async (request) => {
        request.note({ projectId: 7 });
        const body = await request.readJson(64);
        return body.ok ? { status: 201, body: { got: body.value } } : body.refusal;
      },
    },
  ]);
});
afterAll(() => app.server.close(0));

describe("the application", () => {
  it("answers with JSON that no cache keeps and no browser reinterprets", async () => {
    const response = await fetch(`${app.url}/v1/things/a%20b?x=1`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ thing_id: "a b" });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("answers HEAD as GET without a body", async () => {
    const response = await fetch(`${app.url}/v1/things/a`, { method: "HEAD" });
    expect([response.status, response.headers.get("content-length"), await response.text()]).toEqual([200, "16", ""]);
  });

  it("hands every value of a header to its handler, also one that Node would join or drop", async () => {
    const head = "GET /v1/keys HTTP/1.1\r\nHost: a\r\nX-API-Key: one\r\nx-api-key: two\r\nConnection: close\r\n\r\n";
    expect(await exchange(app.port, head)).toContain('["one","two"]');
  });

  it("hands a refusal out with its headers", async () => {
    const response = await fetch(`${app.url}/v1/refused`);
    expect([response.status, response.headers.get("retry-after")]).toEqual([409, "7"]);
    expect(await response.json()).toEqual({ code: "conflict", message: "no" });
  });

  it("L7 answers what was thrown with 503, and keeps its text and its stack to the log", async () => {
    const response = await fetch(`${app.url}/v1/broken`);
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await response.json()).toEqual({ code: "unavailable", message: expect.not.stringMatching(/secret|\.ts|\bat /) });
    expect(app.logged().find((line) => line.event === "request.failed")).toMatchObject({ err: { message: "secret detail" } });
  });

  it.each([
    ["GET", "/"],
    ["GET", "/v1/things/"],
    ["GET", "/V1/things/a"],
    ["GET", "/v1/things/a/b"],
    ["POST", "/v2/things"],
    ["OPTIONS", "/nothing"],
  ])("%s %s is an unknown path", async (method, path) => {
    const response = await fetch(app.url + path, { method });
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({ code: "not_found", message: expect.any(String) });
  });

  it.each(["PUT", "DELETE", "PATCH", "PROPFIND", "GET"])(
    "%s on a path for POST is 405 and names what may be asked",
    async (method) => {
      const response = await fetch(`${app.url}/v1/things`, { method });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
      expect(await response.json()).toMatchObject({ code: "method_not_allowed" });
    },
  );

  it("answers OPTIONS with the methods", async () => {
    const response = await fetch(`${app.url}/v1/things/1`, { method: "OPTIONS" });
    expect([response.status, response.headers.get("allow")]).toEqual([204, "HEAD, GET, OPTIONS"]);
  });

  it("J27 refuses TRACE, which would show a proxy's headers", async () => {
    const answer = await exchange(app.port, "TRACE /v1/things HTTP/1.1\r\nHost: a\r\nX-Secret: 1\r\nConnection: close\r\n\r\n");
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).not.toMatch(/x-secret/i);
  });

  it("asks for admission before it looks at anything, unknown paths included", async () => {
    const asked: (string | undefined)[] = [];
    const closed = await serveApp([{ method: "GET", path: "/v1/things", handle: () => ({ status: 200, body: {} }) }], {
      admit: async (request) => {
        asked.push(request.route);
        return { ok: false, refusal: refuse(429, "rate_limit_exceeded", "later") };
      },
    });
    const statuses = await Promise.all(
      ["/v1/things", "/nothing", "/v1/things/"].map(async (path) => (await fetch(closed.url + path)).status),
    );
    await closed.server.close(0);
    expect(statuses).toEqual([429, 429, 429]);
    expect(asked.sort()).toEqual(["GET /v1/things", undefined, undefined]);
  });

  it("writes one line per request, without query, headers or body", async () => {
    const path = "/v1/things?token=in-the-query";
    await fetch(app.url + path, { method: "POST", headers: { "x-api-key": "in-a-header" }, body: "in-the-body" });
    const lines = app.logged().filter((line) => line.route === "POST /v1/things");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      event: "request.answered",
      method: "POST",
      status: 415,
      code: "unsupported_media_type",
      projectId: 7,
      requestId: expect.any(String),
      ms: expect.any(Number),
    });
    expect(JSON.stringify(lines)).not.toMatch(/in-the-query|in-a-header|in-the-body/);
  });

  it("counts by route and class, unknown paths under one name", async () => {
    await fetch(`${app.url}/secret-path`);
    const { body } = await app.metrics.text();
    expect(body).toMatch(/http_requests_total\{route="unknown",status_class="4xx",service="test"\} [1-9]/);
    expect(body).toMatch(/http_requests_total\{route="GET \/v1\/things\/:thing_id",status_class="5xx",service="test"\} 0/);
    expect(body).not.toContain("secret-path");
  });
});

describe("requests that intermediaries read differently", () => {
  const request = (head: string) => exchange(app.port, `${head}\r\nConnection: close\r\n\r\n`);

  it.each([
    ["J24 two Host headers", "GET /v1/things/1 HTTP/1.1\r\nHost: a\r\nHost: b"],
    ["J9 no Host header", "GET /v1/things/1 HTTP/1.1\r\nX-A: b"],
    ["J25 a Host with credentials", "GET /v1/things/1 HTTP/1.1\r\nHost: evil.com:fake@legit.com"],
    ["J26 an absolute target", "GET http://evil.com/v1/things/1 HTTP/1.1\r\nHost: a"],
    ["an asterisk", "OPTIONS * HTTP/1.1\r\nHost: a"],
  ])("%s is 400", async (_name, head) => {
    const answer = await request(head);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"code":"invalid_request"');
  });

  it("J28 an Upgrade is ignored and the request answered", async () => {
    const head = "GET /v1/things/1 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__";
    expect(await exchange(app.port, `${head}\r\nConnection: Upgrade, HTTP2-Settings, close\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it("J17 an unknown expectation is 417", async () => {
    expect(await request("GET /v1/things/1 HTTP/1.1\r\nHost: a\r\nExpect: miracles")).toMatch(
      /^HTTP\/1\.1 417 .*invalid_request/s,
    );
  });

  it.each([
    ["J10 duplicate content-length", "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"],
    ["J11 length and chunks", "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"],
    ["J12 an unknown transfer coding", "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n{}"],
    ["J13 a folded header", "GET /v1/things/1 HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n 2\r\n\r\n{}"],
    ["J16 a line that ends in CR alone", "GET /v1/things/1 HTTP/1.1\rHost: a\r\r"],
    ["CVE-2021-22959: a blank before the colon", "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length : 2\r\n\r\n{}"],
    ["CVE-2024-27982: a blank before the first header", "POST /v1/things HTTP/1.1\r\n Content-Length: 2\r\nHost: a\r\n\r\n{}"],
    [
      "chunks that are not the last coding",
      "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ],
    [
      "CVE-2022-32215: a folded transfer coding",
      "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "CVE-2022-32213: a coding that only looks like chunked",
      "POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunkedchunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "CVE-2022-32214: a header that ends in LF alone",
      "POST /v1/things HTTP/1.1\r\nHost: a\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    [
      "CVE-2021-22960: a line end inside a chunk's extension",
      "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2;\n{}\r\n0\r\n\r\n",
    ],
    ["no HTTP at all", "EHLO a\r\n\r\n"],
  ])("%s is 400 in JSON and closes the connection", async (_name, bytes) => {
    const answer = await exchange(app.port, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/connection: close.*\{"code":"invalid_request"/s);
  });

  it.each([
    ["J14 a long header", `GET / HTTP/1.1\r\nHost: a\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`],
    ["J15 a long path", `GET /${"a".repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
  ])("%s is 431 in JSON", async (_name, bytes) => {
    expect(await exchange(app.port, bytes)).toMatch(/^HTTP\/1\.1 431 .*\{"code":"invalid_request"/s);
  });
});

describe("the server", () => {
  it("does not answer one request with the fault of the next on the connection", async () => {
    const answer = exchange(app.port, "GET /v1/slow HTTP/1.1\r\nHost: a\r\n\r\nEHLO a\r\n\r\n");
    expect(await answer).toBe("");
    slow.resolve({ status: 200, body: {} });
  });

  it("answers a fault when the requests before it on the connection were answered", async () => {
    const socket = connect(app.port, "127.0.0.1");
    socket.write("GET /v1/things/1 HTTP/1.1\r\nHost: a\r\n\r\n");
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 200 /);
    socket.write("EHLO a\r\n\r\n");
    expect(String(await once(socket, "data"))).toMatch(/^HTTP\/1\.1 400 /);
  });

  it.each([
    ["CVE-2025-25200: X-Forwarded-Proto", `a${" ".repeat(14_000)}b`],
    ["X-Forwarded-Host", `a${" ,".repeat(7_000)}b`],
    ["X-Forwarded-For", `1.1.1.1${" ,".repeat(7_000)}`],
    ["Content-Type", `application/json;${" ".repeat(14_000)}x`],
  ])("is not kept busy by %s full of blanks", async (name, value) => {
    const before = process.cpuUsage();
    const head = `POST /v1/things HTTP/1.1\r\nHost: a\r\n${name.split(" ").at(-1)}: ${value}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`;
    expect(await exchange(app.port, head)).toMatch(/^HTTP\/1\.1 415 /);
    // Of this process, whatever else the machine does: a pattern that tries every blank from every blank takes seconds.
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
  });

  it("CVE-2024-22019: refuses a megabyte of chunk extensions", async () => {
    const head = "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    const answer = await exchange(app.port, `${head}2;${"a".repeat(1024 * 1024)}\r\n{}\r\n0\r\n\r\n`).catch(messageOf);
    expect(answer).toMatch(/^HTTP\/1\.1 413 |ECONNRESET|EPIPE/);
  });

  it("cuts off headers and bodies that drip", async () => {
    const slow = await serveApp(
      [
        {
          method: "POST",
          path: "/",
          handle: async (request) => {
            const body = await request.readJson(64);
            return body.ok ? { status: 200, body: {} } : body.refusal;
          },
        },
      ],
      { server: { requestTimeoutMs: 100, headersTimeoutMs: 50 } },
    );
    const head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n";
    const answers = await Promise.all([exchange(slow.port, head), exchange(slow.port, `${head}\r\n{`)]);
    await slow.server.close(0);
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 408 .*\{"code":"invalid_request"/s);
  });

  it("closes connections above its cap", async () => {
    const small = await serveApp([], { server: { maxConnections: 1 } });
    const first = connect(small.port, "127.0.0.1");
    first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(first, "data");
    await expect(fetch(`${small.url}/`)).rejects.toThrow();
    first.destroy();
    await small.server.close(0);
  });

  it("ends what is under way when it closes, and takes nothing new", async () => {
    const entered = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const closing = await serveApp([
      {
        method: "GET",
        path: "/",
        handle: async () => {
          entered.resolve();
          await release.promise;
          return { status: 200, body: { ended: true } };
        },
      },
    ]);
    const underWay = fetch(`${closing.url}/`);
    await entered.promise;
    const closed = closing.server.close(5_000);
    await expect(fetch(`${closing.url}/`)).rejects.toThrow();
    release.resolve();
    expect(await (await underWay).json()).toEqual({ ended: true });
    await expect(Promise.race([closed.then(() => "closed"), delay(2_000, "late")])).resolves.toBe("closed");
  });

  it("gives up on what does not end in time", async () => {
    const entered = Promise.withResolvers<void>();
    const stuck = await serveApp([
      {
        method: "GET",
        path: "/",
        handle: () => {
          entered.resolve();
          return new Promise<never>(() => {});
        },
      },
    ]);
    const underWay = fetch(`${stuck.url}/`);
    await entered.promise;
    await stuck.server.close(50);
    await expect(underWay).rejects.toThrow();
  });
});
