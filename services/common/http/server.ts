import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../logging/logger.ts";
import { refuse } from "./answer.ts";
import { addressBucket, clientAddress } from "./client-ip.ts";
import { UnreadAnswers } from "./unread-answers.ts";

export interface HttpServerOptions {
  /** Connections beyond this many are closed unheard. */
  readonly maxConnections: number;
  /** The same for those of one address (IPv6: of one /64). Default: no cap of its own, as behind a proxy. */
  readonly maxConnectionsPerAddress?: number;
  /** How long the whole request, body included, may take to arrive (10 s). */
  readonly requestTimeoutMs?: number;
  /** How long its header may take (5 s). */
  readonly headersTimeoutMs?: number;
  /** How long a client may take to read what was written to it (30 s). */
  readonly readTimeoutMs?: number;
  /** After so many requests a connection is closed with its answer (10,000), so that connections spread over new instances. */
  readonly maxRequestsPerConnection?: number;
  readonly logger?: Logger;
}

/** Longer than the idle time-out of common load balancers (60 s), so that it is they who close: RFC 9112 section 9.5. */
const keepAliveTimeoutMs = 65_000;

const checkIntervalMs = 1_000;
/** How long a client that was refused may take to close, so that it reads the refusal instead of meeting a reset. */
const lingerMs = 1_000;
const jsonType = "application/json; charset=utf-8";

/**
 * An HTTP server with limits for the open internet. What does not even become a request (an ill-formed, over-long or slow one)
 * is answered in the same JSON form as everything else.
 */
export class HttpServer {
  readonly #server: Server;
  /** The answer under way on a connection: nothing may be written into the middle of it. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>();
  /** Requests that came on a connection so far. */
  readonly #served = new WeakMap<Duplex, number>();
  /** Connections by the bucket of their address. */
  readonly #connections = new Map<string, number>();
  readonly #unread: UnreadAnswers;
  readonly #looks: NodeJS.Timeout;

  constructor(listener: RequestListener, options: HttpServerOptions) {
    this.#server = createServer({
      requestTimeout: options.requestTimeoutMs ?? 10_000,
      headersTimeout: options.headersTimeoutMs ?? 5_000,
      connectionsCheckingInterval: checkIntervalMs,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: 16 * 1024,
      // Missing Host headers are refused by the application, in its own form.
      requireHostHeader: false,
    });
    this.#server.maxConnections = options.maxConnections;
    this.#unread = new UnreadAnswers(options.readTimeoutMs ?? 30_000);
    this.#looks = setInterval(() => this.#unread.look(performance.now()), checkIntervalMs).unref();
    const perAddress = options.maxConnectionsPerAddress ?? Number.POSITIVE_INFINITY;
    this.#server.on("connection", (socket) => this.#admit(socket, perAddress));
    // Out of file descriptors, for one: the connection is lost, the server goes on.
    this.#server.on("error", (error) => options.logger?.warn({ err: error }, "http.server_error"));
    const maxRequests = options.maxRequestsPerConnection ?? 10_000;
    this.#server.on("request", (request, response) => {
      const count = (this.#served.get(request.socket) ?? 0) + 1;
      // The answer before it is the connection's last: nothing of this one was done, and the client can tell.
      if (count > maxRequests) return;
      // Node's own maxRequestsPerSocket says `connection: close` and does not close.
      if (count === maxRequests) response.shouldKeepAlive = false;
      this.#served.set(request.socket, count);
      this.#answers.set(request.socket, response);
      void listener(request, response);
    });
    this.#server.on("checkExpectation", (_request, response) => {
      const { status, body } = refuse(417, "invalid_request", "the only expectation known here is 100-continue");
      const text = JSON.stringify(body);
      const headers = { "content-type": jsonType, "content-length": Buffer.byteLength(text), connection: "close" };
      response.writeHead(status, headers).end(text);
    });
    this.#server.on("clientError", (error: Error & { code?: string }, socket) => this.#refuse(error, socket));
  }

  /** Resolves with the port that was bound; rejects when it is taken. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Takes no new connection, lets requests under way end within `graceMs`, then closes what is left. */
  async close(graceMs = 10_000): Promise<void> {
    const closed = new Promise<true>((resolve) => this.#server.close(() => resolve(true)));
    const giveUpAtMs = performance.now() + graceMs;
    // A kept-alive connection becomes idle only after its answer, so asking once is not enough.
    while (!(await Promise.race([closed, delay(20, false)]))) {
      if (performance.now() < giveUpAtMs) this.#server.closeIdleConnections();
      else this.#server.closeAllConnections();
    }
    clearInterval(this.#looks);
  }

  #admit(socket: Socket, perAddress: number): void {
    const bucket = addressBucket(clientAddress(socket.remoteAddress, [], 0));
    const count = (this.#connections.get(bucket) ?? 0) + 1;
    if (count > perAddress) return void socket.destroy();
    this.#connections.set(bucket, count);
    this.#unread.watch(socket);
    socket.once("close", () => {
      const left = (this.#connections.get(bucket) ?? 1) - 1;
      if (left === 0) this.#connections.delete(bucket);
      else this.#connections.set(bucket, left);
    });
  }

  #refuse(error: Error & { code?: string }, socket: Duplex): void {
    const answer = this.#answers.get(socket);
    if (!socket.writable || (answer !== undefined && belongsTo(answer))) return void socket.destroy();
    const [status, reason, message] = causes[error.code ?? ""] ?? illFormed;
    const text = JSON.stringify(refuse(status, "invalid_request", message).body);
    const head = [
      `HTTP/1.1 ${status} ${reason}`,
      `content-type: ${jsonType}`,
      `content-length: ${Buffer.byteLength(text)}`,
      "connection: close",
    ];
    // What it was told has to stay true, even if the rest of its body should come yet.
    answer?.req.pause();
    socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
    // Node waits for the client's end of the connection for ever, and what came of the body would be held as long.
    setTimeout(() => socket.destroy(), lingerMs).unref();
  }
}

/**
 * Whether something written now would be taken for (a part of) this answer or for a second one. Behind a whole request a fault is
 * the next one's, and its turn comes after the answer; before that it is of the request that was answered already.
 */
function belongsTo(answer: ServerResponse): boolean {
  return answer.writableFinished ? !answer.req.complete : answer.headersSent || answer.req.complete;
}

const illFormed = [400, "Bad Request", "this is not an HTTP request"] as const;
const causes: Readonly<Record<string, readonly [number, string, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "the request took too long to arrive"],
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "the request line and the headers are too long"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "Payload Too Large", "the chunk extensions are too long"],
};
