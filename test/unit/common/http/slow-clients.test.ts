import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { Route } from "../../../../services/common/http/app.ts";
import { UnreadAnswers } from "../../../../services/common/http/unread-answers.ts";
import { waitFor } from "../../../support/wait-for.ts";
import { exchange, read, type ServedApp, serveApp } from "./served-app.ts";

const sockets: Socket[] = [];
let app: ServedApp | undefined;
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await app?.server.close(0);
});

const answer: Route<undefined> = { method: "GET", path: "/", handle: () => ({ status: 200, body: {} }) };
/** More than the buffers of two kernels take. */
const large: Route<undefined> = { method: "GET", path: "/large", handle: () => ({ status: 200, body: "x".repeat(32_000_000) }) };

async function open(port: number, options: { from?: string; send?: string } = {}): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", ...(options.from === undefined ? {} : { localAddress: options.from }) });
  sockets.push(socket);
  socket.on("error", () => undefined);
  await once(socket, "connect");
  if (options.send !== undefined) socket.write(options.send);
  return socket;
}

/** Once it is closed, whatever came before. */
const closed = (socket: Socket) => (socket.closed ? Promise.resolve() : once(socket.resume(), "close"));
const status = async (port: number) => (await fetch(`http://127.0.0.1:${port}/`)).status;
const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";

describe("one slow client harms nobody:", () => {
  it("a thousand that say nothing leave the others their answers, and are closed after the time for a header", async () => {
    app = await serveApp([answer], { server: { maxConnections: 1_100, headersTimeoutMs: 200 } });
    const { port } = app;
    const idle = await Promise.all(Array.from({ length: 1_000 }, () => open(port)));
    expect(await status(port)).toBe(200);
    await Promise.all(idle.map(closed));
  });

  it("headers and bodies that drip, asked for or not, are cut off in the time for a request", async () => {
    app = await serveApp([answer, read], { server: { headersTimeoutMs: 100, requestTimeoutMs: 200 } });
    const { port } = app;
    const drips = [
      "GET / HTTP/1.1\r\nHost: a\r\nX-A",
      `${post}Content-Length: 900\r\n\r\n{`,
      `${post}Transfer-Encoding: chunked\r\n\r\n384\r\n{`,
      "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n{",
    ];
    const slow = await Promise.all(drips.map((send) => open(port, { send })));
    expect(await status(port)).toBe(200);
    await Promise.all(slow.map(closed));
  });

  it("a request that was refused while its body came is over, whether its client goes on or does nothing at all", async () => {
    const bodies: boolean[] = [];
    const handle: Route<undefined>["handle"] = async (request) => {
      bodies.push((await request.readJson(1_000)).ok);
      return { status: 200, body: {} };
    };
    app = await serveApp([{ ...read, handle }], { server: { headersTimeoutMs: 100, requestTimeoutMs: 200 } });
    const { port, metrics } = app;
    const refused = async (send: string) => {
      const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
      sockets.push(socket);
      socket.on("error", () => undefined).write(send);
      await once(socket.resume(), "end");
      return socket;
    };
    const late = `${post}Content-Length: 2\r\n\r\n{`;
    const illFormed = `${post}Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n`;
    const [goesOn] = await Promise.all([late, late, illFormed].map(refused));
    goesOn?.write("}");
    const held = async () => (await metrics.text()).body;
    await waitFor("the room given back", held, (text) => text.includes('http_body_bytes_held{service="test"} 0'));
    expect(bodies).toEqual([false, false, false]);
  });

  it("a request that was answered before its body came is not answered a second time when the body never comes", async () => {
    app = await serveApp([answer], { server: { headersTimeoutMs: 100, requestTimeoutMs: 200 } });
    const answers = await exchange(app.port, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n{");
    expect(answers.match(/HTTP\/1\.1 \d{3}/g)).toEqual(["HTTP/1.1 200"]);
  });

  it("an answer that nobody reads is given up, and the connection with it", async () => {
    app = await serveApp([answer, large], { server: { readTimeoutMs: 100 } });
    const slow = await open(app.port, { send: "GET /large HTTP/1.1\r\nHost: a\r\n\r\n" });
    await once(slow, "data");
    slow.pause();
    expect(await status(app.port)).toBe(200);
    // Resolves before its grace is over only if the connection ends by itself.
    await app.server.close(3_600_000);
  });

  it("a large answer that is read arrives whole", async () => {
    app = await serveApp([large], { server: { readTimeoutMs: 30_000 } });
    expect(await (await fetch(`${app.url}/large`)).json()).toHaveLength(32_000_000);
  });

  it("connections of one address beyond its share are closed, those of another are served", async () => {
    app = await serveApp([answer], { server: { maxConnectionsPerAddress: 3 } });
    const { port } = app;
    const mine = await Promise.all([open(port), open(port), open(port)]);
    await closed(await open(port));
    const other = await open(port, { from: "127.0.0.2", send: "GET / HTTP/1.1\r\nHost: a\r\n\r\n" });
    expect(String(await once(other, "data"))).toMatch(/^HTTP\/1\.1 200 /);
    mine[0]?.destroy();
    // The server hears of the end before anything that is sent after it is seen.
    const again = await open(port, { from: "127.0.0.2", send: "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" });
    await closed(again);
    expect(await status(port)).toBe(200);
  });

  it("a connection ends with the answer that is its last, and takes nothing after it", async () => {
    app = await serveApp([answer], { server: { maxRequestsPerConnection: 2 } });
    const request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const answers = await exchange(app.port, request + request + request);
    expect(answers.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(2);
    expect(answers).toMatch(/connection: keep-alive.*connection: close/is);
  });
});

describe("what waits to be read", () => {
  /** A socket of which so much was written and so much waits. */
  const fake = () => {
    const socket = { bytesWritten: 0, writableLength: 0, destroyed: false, once: () => socket, destroy: () => end() };
    const end = () => {
      socket.destroyed = true;
    };
    return socket;
  };
  const write = (socket: ReturnType<typeof fake>, written: number, waiting: number) =>
    Object.assign(socket, { bytesWritten: written, writableLength: waiting });

  it.each<[string, readonly (readonly [written: number, waiting: number])[], boolean]>([
    [
      "nothing waits",
      [
        [10, 0],
        [10, 0],
        [10, 0],
      ],
      false,
    ],
    [
      "it does not move",
      [
        [10, 10],
        [10, 10],
        [10, 10],
      ],
      true,
    ],
    [
      "it moves a little",
      [
        [10, 10],
        [10, 9],
        [10, 8],
      ],
      true,
    ],
    [
      "it was read in time, and more was written",
      [
        [10, 10],
        [20, 5],
        [20, 5],
      ],
      false,
    ],
    [
      "what was written later waits since later",
      [
        [10, 0],
        [20, 10],
        [20, 10],
      ],
      false,
    ],
    [
      "newer answers do not hide it",
      [
        [10, 10],
        [20, 20],
        [30, 30],
      ],
      true,
    ],
  ])("%s", (_name, looks, given_up) => {
    const unread = new UnreadAnswers(2_000);
    const socket = fake();
    unread.watch(socket as unknown as Socket);
    for (const [index, [written, waiting]] of looks.entries()) {
      write(socket, written, waiting);
      unread.look(index * 1_000);
    }
    expect(socket.destroyed).toBe(given_up);
  });
});
