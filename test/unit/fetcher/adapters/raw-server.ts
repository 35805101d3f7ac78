import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";

/** A TCP server that answers each HTTP request on a connection as it is told, byte for byte. */
export interface RawServer {
  readonly origin: string;
  readonly port: number;
  /** Connections that were opened so far. */
  readonly connectionCount: number;
  /** Connections that are open now. */
  readonly openCount: number;
  /** Request heads, in the order of arrival. */
  readonly requests: readonly string[];
  close(): Promise<void>;
}

export type RawAnswer = (socket: Socket, requestNumber: number) => void;

/** Listens on one loopback address, or on all of this machine's with 0.0.0.0. */
export async function startRawServer(answer: RawAnswer, host = "127.0.0.1", atPort = 0): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  let connectionCount = 0;
  const server = createServer((socket) => {
    connectionCount += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      for (let end = received.indexOf("\r\n\r\n"); end >= 0; end = received.indexOf("\r\n\r\n")) {
        requests.push(received.slice(0, end));
        received = received.slice(end + 4);
        answer(socket, requests.length);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(atPort, host, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    get connectionCount() {
      return connectionCount;
    },
    get openCount() {
      return sockets.size;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** A whole answer with a right length. */
export function answerOf(body: string | Buffer, status = "200 OK", headers = ""): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([Buffer.from(`HTTP/1.1 ${status}\r\ncontent-length: ${bytes.length}\r\n${headers}\r\n`), bytes]);
}
