import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../../../services/common/clock.ts";
import { Openings } from "../../../../services/fetcher/adapters/openings.ts";
import { type Connection, OriginPool } from "../../../../services/fetcher/adapters/origin-pool.ts";
import { writeHostile } from "../../../support/metadata-api/hostile-writer.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { failureOf, guardedApi } from "./guarded-api.ts";
import { answerOf, type RawAnswer, type RawServer, startRawServer } from "./raw-server.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function server(answer: RawAnswer): Promise<RawServer> {
  const started = await startRawServer(answer);
  closing.push(() => started.close());
  return started;
}

function api(...options: Parameters<typeof guardedApi>) {
  const created = guardedApi(...options);
  closing.push(() => created.close());
  return created;
}

const numbered: RawAnswer = (socket, requestNumber) => void socket.write(answerOf(`{"request":${requestNumber}}`));
const open = (raw: RawServer, count: number) =>
  waitFor(
    "open connections",
    () => raw.openCount,
    (open) => open === count,
  );

describe("a call", () => {
  it("asks for the token's JSON, uncompressed, under a fixed name, and for nothing else", async () => {
    const raw = await server(numbered);
    await api().call({ projectId: 1, origin: raw.origin, path: "/tokens/42" });
    expect(raw.requests[0]?.split("\r\n").sort()).toEqual(
      [
        "GET /tokens/42 HTTP/1.1",
        `host: 127.0.0.1:${raw.port}`,
        "connection: keep-alive",
        "accept: application/json",
        "accept-encoding: identity",
        "user-agent: asset-metadata-refresh/1",
      ].sort(),
    );
  });

  it("keeps the body to the letter, with the SHA-256 of its bytes", async () => {
    const text = '{ "name" : "\\u00e9 é",\n "n": 1.0 }';
    const raw = await server((socket) => void socket.write(answerOf(text)));
    const contentHash = createHash("sha256").update(text).digest("hex");
    expect(await api().call({ projectId: 1, origin: raw.origin, path: "/1" })).toMatchObject({ ok: true, text, contentHash });
  });

  it("puts a body together that comes in pieces, in the middle of characters too", async () => {
    const text = `{"name":"${"é€🗡".repeat(500)}"}`;
    const bytes = answerOf(text);
    const raw = await server((socket) => {
      for (let at = 0; at < bytes.length; at += 7) socket.write(bytes.subarray(at, at + 7));
    });
    expect(await api().call({ projectId: 1, origin: raw.origin, path: "/1" })).toMatchObject({ ok: true, text });
  });
});

describe("connections", () => {
  it("are not used by a call that waited for one until it might not be made any more", async () => {
    const raw = await server(numbered);
    const calls = api();
    let mayStart = true;
    const wanted = Array.from({ length: 60 }, (_, index) =>
      calls.call({ projectId: 1, origin: raw.origin, path: `/${index}` }, () => mayStart),
    );
    mayStart = false;
    const results = await Promise.all(wanted);
    const abandoned = results.filter((result) => result === "abandoned").length;
    expect(abandoned).toBeGreaterThan(40);
    expect(raw.requests).toHaveLength(60 - abandoned);
    mayStart = true;
    expect(await calls.call({ projectId: 1, origin: raw.origin, path: "/later" }, () => mayStart)).toMatchObject({ ok: true });
  });

  it("serve one call after the other", async () => {
    const raw = await server(numbered);
    const calls = api();
    for (let number = 1; number <= 10; number++) {
      const result = await calls.call({ projectId: 1, origin: raw.origin, path: `/${number}` });
      expect(result).toMatchObject({ ok: true, text: `{"request":${number}}` });
    }
    expect(raw.connectionCount).toBe(1);
  });

  it("are as many as the calls under way", async () => {
    const raw = await server((socket) => void setTimeout(() => socket.write(answerOf("{}")), 20));
    const calls = api();
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let number = 0; number < 5; number++) await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
      }),
    );
    expect(raw.connectionCount).toBe(8);
  });

  it("are never shared between projects, even to one origin", async () => {
    const raw = await server(numbered);
    const calls = api();
    await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
    await calls.call({ projectId: 2, origin: raw.origin, path: "/1" });
    expect(raw.connectionCount).toBe(2);
  });

  it("survive an answer such as 404, and serve the next call", async () => {
    const raw = await server((socket) => void socket.write(answerOf("no", "404 Not Found")));
    const calls = api();
    await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
    await calls.call({ projectId: 1, origin: raw.origin, path: "/2" });
    expect(raw.connectionCount).toBe(1);
  });

  it("are opened anew when the host closes one after each answer", async () => {
    const raw = await server(
      (socket, number) => void socket.end(answerOf(`{"request":${number}}`, "200 OK", "connection: close\r\n")),
    );
    const calls = api();
    for (let number = 1; number <= 5; number++) {
      const result = await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
      expect(result).toMatchObject({ ok: true, text: `{"request":${number}}` });
    }
    expect(raw.connectionCount).toBe(5);
  });

  it("are closed after a second without a call, whatever the host offers", async () => {
    const raw = await server((socket) => void socket.write(answerOf("{}", "200 OK", "keep-alive: timeout=600\r\n")));
    const calls = api();
    await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
    expect(raw.openCount).toBe(1);
    await open(raw, 0);
    expect(await calls.call({ projectId: 1, origin: raw.origin, path: "/2" })).toMatchObject({ ok: true });
  });

  it("are forgotten when they are closed: what is kept is what is open", async () => {
    // Answered when all have been asked: none is there to be used again before.
    const asked: Socket[] = [];
    let answeredAt = 0;
    const raw = await server((socket) => {
      asked.push(socket);
      if (asked.length < answeredAt) return;
      for (const waiting of asked.splice(0)) waiting.write(answerOf("{}"));
    });
    const calls = api();
    const many = (count: number) => {
      answeredAt = count;
      return Promise.all(
        Array.from({ length: count }, (_, id) => calls.call({ projectId: 1, origin: raw.origin, path: `/${id}` })),
      );
    };
    await many(50);
    expect(calls.idleConnections).toBe(50);
    await many(20);
    expect(calls.idleConnections).toBe(50);
    await open(raw, 0);
    await waitFor(
      "connections to be forgotten",
      () => calls.idleConnections,
      (count) => count === 0,
    );
    await many(3);
    expect(calls.idleConnections).toBe(3);
    calls.close();
    expect(calls.idleConnections).toBe(0);
  });

  it("are kept idle up to a number, of all origins together", () => {
    const idleCount = { now: 0, most: 5 };
    const shared = { idleCount, openings: new Openings(systemClock) };
    const pools = ["http://127.0.0.1:1", "http://127.0.0.1:2"].map((origin) => new OriginPool(origin, () => undefined, shared));
    const taken: { pool: OriginPool; connection: Connection }[] = [];
    for (const pool of pools) {
      for (let count = 0; count < 4; count++) pool.use((connection) => void taken.push({ pool, connection }));
    }
    for (const { pool, connection } of taken) pool.giveBack(connection);
    expect(taken.map(({ connection }) => connection.client.destroyed)).toEqual([...Array(5).fill(false), ...Array(3).fill(true)]);
    expect(idleCount.now).toBe(5);
    for (const pool of pools) pool.close();
    expect([idleCount.now, taken.every(({ connection }) => connection.client.destroyed)]).toEqual([0, true]);
  });

  it("are closed with the service", async () => {
    const raw = await server(numbered);
    const calls = guardedApi();
    await calls.call({ projectId: 1, origin: raw.origin, path: "/1" });
    calls.close();
    await open(raw, 0);
  });

  it.each([
    ["in one piece with the answer, the next call at once", 0, false],
    ["in one piece with the answer", 0, true],
    ["a moment after the answer", 30, true],
  ])("that bring an answer nobody asked for, %s, do not give it to the next token", async (_name, delayMs, pause) => {
    const poison = answerOf('{"poison":true}');
    const raw = await server((socket, number) => {
      const good = answerOf(`{"request":${number}}`);
      if (delayMs === 0) return void socket.write(Buffer.concat([good, poison]));
      socket.write(good);
      setTimeout(() => socket.write(poison), delayMs);
    });
    const calls = api();
    for (let number = 1; number <= 3; number++) {
      const result = await calls.call({ projectId: 1, origin: raw.origin, path: `/${number}` });
      expect(result).toMatchObject({ ok: true, text: `{"request":${number}}` });
      // The poison has come, and the connection with it has gone.
      if (pause) await open(raw, 0);
    }
    expect(raw.connectionCount).toBe(3);
  });

  it("that bring an answer nobody asked for do not give it to a call that waits for a connection either", async () => {
    const raw = await server((socket, number) => {
      const path = raw.requests[number - 1]?.split(" ")[1];
      socket.write(Buffer.concat([answerOf(JSON.stringify({ path })), answerOf('{"poison":true}')]));
    });
    const calls = api();
    const paths = Array.from({ length: 100 }, (_, id) => `/${id}`);
    const results = await Promise.all(paths.map((path) => calls.call({ projectId: 1, origin: raw.origin, path })));
    expect(results.map((result) => result.ok && result.text)).toEqual(paths.map((path) => JSON.stringify({ path })));
  });
});

describe("the deadline", () => {
  it("ends a body that drips, whatever time-outs start anew with every byte", async () => {
    const text = `{"name":"${"x".repeat(400)}"}`;
    const bytes = answerOf(text);
    const drip = { fromByte: bytes.length - text.length, everyMs: 50 };
    const raw = await server((socket) => writeHostile(socket, { bytes, drip }));
    const result = await api({ timeoutMs: 500 }).call({ projectId: 1, origin: raw.origin, path: "/1" });
    expect(failureOf(result)).toMatchObject({ detail: "timeout", status: 200 });
    expect(result.durationMs).toBeGreaterThanOrEqual(499);
    expect(result.bodyBytes).toBeLessThan(text.length);
    await open(raw, 0);
  });

  it.each([
    [800, true],
    [1_300, false],
  ])("of a second: an answer that is whole after %i ms arrives in time: %s", async (delayMs, inTime) => {
    const raw = await server((socket) => void setTimeout(() => socket.write(answerOf("{}")), delayMs));
    const result = await api({ timeoutMs: 1_000 }).call({ projectId: 1, origin: raw.origin, path: "/1" });
    expect(result.ok).toBe(inTime);
  });

  it("does not charge a host for a stall of our own event loop", async () => {
    const worker = new Worker(
      `const { parentPort } = require("node:worker_threads");
       const server = require("node:http").createServer((request, response) => {
         parentPort.postMessage("asked");
         setTimeout(() => response.end("{}"), 100);
       });
       server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`,
      { eval: true },
    );
    closing.push(() => worker.terminate());
    const [port] = await once(worker, "message");
    const asked = once(worker, "message");
    const call = api({ timeoutMs: 500 }).call({ projectId: 1, origin: `http://127.0.0.1:${port}`, path: "/1" });
    await asked;
    const blockedUntil = performance.now() + 1_500;
    while (performance.now() < blockedUntil);
    expect(await call).toMatchObject({ ok: true });
  });

  it("gives up a connection that is not there yet, and leaves nothing behind", async () => {
    // Takes connections and never says a word of TLS.
    const raw = await server(() => {});
    const calls = api({ timeoutMs: 300, resolve: () => Promise.resolve(["127.0.0.1"]) });
    const origin = `https://api.example.test:${raw.port}`;
    const results = await Promise.all(Array.from({ length: 5 }, () => calls.call({ projectId: 1, origin, path: "/1" })));
    expect(results.map((result) => failureOf(result).detail)).toEqual(Array.from({ length: 5 }, () => "timeout"));
    expect(calls.underWay).toBe(0);
    expect(raw.connectionCount).toBe(5);
    await open(raw, 0);
  });
});
