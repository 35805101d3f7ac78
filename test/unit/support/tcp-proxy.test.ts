import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { waitFor } from "../../support/wait-for.ts";

let server: Server;
let proxy: TcpProxy;
/** What the server has received, all connections together. */
let received: string;
let serverSockets: Socket[];
const clients: Client[] = [];

/** Answers every byte with itself. */
beforeEach(async () => {
  received = "";
  serverSockets = [];
  server = createServer((socket) => {
    serverSockets.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      received += bytes.toString();
      socket.write(bytes);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy = await TcpProxy.open({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
});

afterEach(async () => {
  for (const { socket } of clients.splice(0)) socket.destroy();
  await proxy.down();
  server.close();
});

interface Client {
  readonly socket: Socket;
  text: string;
  error: string | undefined;
  ended: boolean;
}

async function open(): Promise<Client> {
  const socket = connect(proxy.port, "127.0.0.1");
  const client: Client = { socket, text: "", error: undefined, ended: false };
  clients.push(client);
  socket.on("data", (bytes: Buffer) => {
    client.text += bytes.toString();
  });
  socket.on("error", (error: Error & { code?: string }) => {
    client.error = error.code;
  });
  socket.on("end", () => {
    client.ended = true;
  });
  await once(socket, "connect");
  return client;
}

function answered(client: Client, text: string): Promise<string> {
  return waitFor(
    `the answer ${text.slice(0, 20)}`,
    () => client.text,
    (seen) => seen === text,
    { everyMs: 1 },
  );
}

function failed(client: Client): Promise<string | undefined> {
  return waitFor(
    "the end of the connection",
    () => client.error,
    (code) => code !== undefined,
    { everyMs: 1 },
  );
}

it("passes every byte in order, both ways, and the end of the stream", async () => {
  const client = await open();
  const text = Array.from({ length: 300_000 }, (_, index) => String(index % 10)).join("");
  client.socket.end(text);
  await answered(client, text);
  await waitFor(
    "the end",
    () => client.ended,
    (ended) => ended,
  );
  expect(received).toBe(text);
});

it("latency delays every byte by as much, and does not add up over the bytes that wait", async () => {
  proxy.inject("toServer", { latencyMs: 200 });
  const client = await open();
  const begin = performance.now();
  for (const piece of ["a", "b", "c", "d"]) client.socket.write(piece);
  await answered(client, "abcd");
  expect(performance.now() - begin).toBeGreaterThanOrEqual(199);
});

it("a narrow wire lets no more through than its bytes a second", async () => {
  proxy.inject("toClient", { bytesPerSecond: 10_000 });
  const client = await open();
  const begin = performance.now();
  client.socket.write("x".repeat(3_000));
  await answered(client, "x".repeat(3_000));
  // The first slice of 200 bytes goes at once, and the last one ends when it is written.
  expect(performance.now() - begin).toBeGreaterThanOrEqual(250);
});

it("a cut after n bytes lets exactly n through and resets the connection", async () => {
  const client = await open();
  client.socket.write("warm");
  await answered(client, "warm");
  proxy.inject("toServer", { cutAfterBytes: 5 });
  client.socket.write("hello, world");
  expect(await failed(client)).toBe("ECONNRESET");
  await waitFor(
    "what came through",
    () => received,
    (text) => text === "warmhello",
  );
});

it("a cut at the next answer drops the answer to a request that was served", async () => {
  proxy.inject("toClient", { cutAfterBytes: 0 });
  const client = await open();
  client.socket.write("write this");
  expect(await failed(client)).toBe("ECONNRESET");
  expect(client.text).toBe("");
  expect(received).toBe("write this");
});

it("a black hole holds everything back without a word, and it all arrives when it is over", async () => {
  const client = await open();
  proxy.inject("toClient", { blackHole: true });
  client.socket.write("lost?");
  await waitFor(
    "the request",
    () => received,
    (text) => text === "lost?",
  );
  client.socket.write(" still there?");
  await waitFor(
    "a request after the first answer",
    () => received,
    (text) => text === "lost? still there?",
  );
  expect(client.text).toBe("");
  expect(client.error).toBeUndefined();
  proxy.heal();
  await answered(client, "lost? still there?");
});

it("is gone while it is down, and comes back on the same port", async () => {
  const client = await open();
  const { port } = proxy;
  await proxy.down();
  expect(await failed(client)).toBe("ECONNRESET");
  const refused = connect(port, "127.0.0.1");
  const [error] = (await once(refused, "error")) as [Error & { code?: string }];
  expect(error.code).toBe("ECONNREFUSED");
  await proxy.up();
  expect(proxy.port).toBe(port);
  const again = await open();
  again.socket.write("back");
  await answered(again, "back");
});

it("a client that resets its connection resets the one to the server", async () => {
  const client = await open();
  client.socket.write("hello");
  await answered(client, "hello");
  client.socket.resetAndDestroy();
  await waitFor(
    "the end at the server",
    () => serverSockets.map(({ destroyed }) => destroyed),
    (destroyed) => destroyed.length === 1 && destroyed[0] === true,
  );
  await waitFor(
    "the proxy to forget it",
    () => proxy.connections,
    (count) => count === 0,
  );
});
