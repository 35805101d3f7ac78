import { type AddressInfo, createServer, type Socket } from "node:net";
import { serveProgram } from "./program.ts";
import { sampleBody } from "./sample-body.ts";

/**
 * A Metadata API that costs as little as possible, so that what calls it is measured and not the API: it reads the request line
 * and nothing else, and writes head and body at once. GET /<profile>/<token id>, one request at a time on a connection.
 */

interface Profile {
  readonly latencyMs: number;
  readonly bodyBytes: number;
}

const profiles = new Map<string, Profile>();
/** Paths in the order of arrival; kept until they are read. */
let log: string[] = [];
let underWay = 0;
let mostUnderWay = 0;
/** How much later than wanted the answers left, of those that had to wait. */
let lateMs: number[] = [];

const server = createServer({ noDelay: true }, (socket) => {
  let rest = "";
  socket.on("data", (piece) => {
    rest += piece.toString("latin1");
    if (!rest.endsWith("\r\n\r\n")) return;
    answerLater(socket, rest.slice(4, rest.indexOf(" ", 4)));
    rest = "";
  });
  socket.on("error", () => socket.destroy());
});

function answerLater(socket: Socket, path: string): void {
  log.push(path);
  underWay += 1;
  mostUnderWay = Math.max(mostUnderWay, underWay);
  const [, name = "", tokenId = ""] = path.split("/");
  const profile = profiles.get(name);
  if (profile === undefined) socket.destroy();
  else if (profile.latencyMs === 0) answer(socket, tokenId, profile);
  else {
    const dueMs = performance.now() + profile.latencyMs;
    setTimeout(() => {
      lateMs.push(performance.now() - dueMs);
      answer(socket, tokenId, profile);
    }, profile.latencyMs);
  }
}

function answer(socket: Socket, tokenId: string, { bodyBytes }: Profile): void {
  underWay -= 1;
  if (socket.destroyed) return;
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${bodyBytes}\r\n\r\n`;
  socket.write(head + sampleBody(tokenId, bodyBytes), "latin1");
}

serveProgram({
  listen: () =>
    new Promise((resolve) => {
      server.listen({ port: 0, host: "127.0.0.1", backlog: 2_048 }, () => resolve((server.address() as AddressInfo).port));
    }),
  setProfile: ({ name, ...profile }: Profile & { name: string }) => void profiles.set(name, profile),
  takeFigures: () => {
    const figures = { paths: log, mostUnderWay, lateMs };
    log = [];
    lateMs = [];
    mostUnderWay = underWay;
    return figures;
  },
});
