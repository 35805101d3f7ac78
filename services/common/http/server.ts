import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "../logging/logger.ts";
import { refuse } from "./answer.ts";

export interface HttpServerOptions {
  /** Connections beyond this many are closed unheard. */
  readonly maxConnections: number;
  /** How long the whole request, body included, may take to arrive (10 s). */
  readonly requestTimeoutMs?: number;
  /** How long its header may take (5 s). */
  readonly headersTimeoutMs?: number;
  readonly logger?: Logger;
}

/** Longer than the idle time-out of common load balancers (60 s), so that it is they who close: RFC 9112 section 9.5. */
const keepAliveTimeoutMs = 65_000;

/**
 * An HTTP server with limits for the open internet. What does not even become a request (an ill-formed, over-long or slow one)
 * is answered in the same JSON form as everything else.
 */
export class HttpServer {
  readonly #server: Server;
  /** The answer under way on a connection: nothing may be written into the middle of it. */
  readonly #answers = new WeakMap<Duplex, ServerResponse>();

  constructor(listener: RequestListener, options: HttpServerOptions) {
    this.#server = createServer({
      requestTimeout: options.requestTimeoutMs ?? 10_000,
      headersTimeout: options.headersTimeoutMs ?? 5_000,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: keepAliveTimeoutMs,
      maxHeaderSize: 16 * 1024,
      // Missing Host headers are refused by the application, in its own form.
      requireHostHeader: false,
    });
    this.#server.maxConnections = options.maxConnections;
    // Out of file descriptors, for one: the connection is lost, the server goes on.
    this.#server.on("error", (error) => options.logger?.warn({ err: error }, "http.server_error"));
    this.#server.on("request", (request, response) => {
      this.#answers.set(request.socket, response);
      void listener(request, response);
    });
    this.#server.on("checkExpectation", (_request, response) => {
      const { status, body } = refuse(417, "invalid_request", "the only expectation known here is 100-continue");
      response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(body));
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
  }

  #refuse(error: Error & { code?: string }, socket: Duplex): void {
    const answer = this.#answers.get(socket);
    // A fault behind a whole request is the next one's: answered now, it would be taken for the answer to the first.
    const busy = answer !== undefined && !answer.writableFinished && (answer.headersSent || answer.req.complete);
    if (!socket.writable || busy) return void socket.destroy();
    const [status, reason, message] = causes[error.code ?? ""] ?? illFormed;
    const text = JSON.stringify(refuse(status, "invalid_request", message).body);
    const head = [
      `HTTP/1.1 ${status} ${reason}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(text)}`,
      "connection: close",
    ];
    socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
  }
}

const illFormed = [400, "Bad Request", "this is not an HTTP request"] as const;
const causes: Readonly<Record<string, readonly [number, string, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "the request took too long to arrive"],
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "the request line and the headers are too long"],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, "Payload Too Large", "the chunk extensions are too long"],
};
