import { STATUS_CODES } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Answer } from "./behaviour.ts";
import type { HostileAnswer } from "./hostile-answers.ts";
import { writeHostile } from "./hostile-writer.ts";

/** One GET that wants an answer: one of the four, once. */
export interface Taken {
  readonly path: string;
  /** Request line and headers, as they came. */
  readonly head: string;
  answer(answer: Answer): void;
  /** Leaves the caller waiting. */
  hang(): void;
  reset(): void;
  attack(answer: HostileAnswer): void;
  /** Called when the answer has been written or the connection has gone, whatever is first. */
  onEnd: () => void;
}

/** A connection is closed after so many answers, announced, and after so long without a call, unannounced; null: never. */
export interface KeepAlive {
  readonly calls: number | null;
  readonly idleMs: number | null;
}

export interface ResponderOptions {
  readonly take: (taken: Taken) => void;
  readonly keepAlive: () => KeepAlive;
}

/** Characters of a request's head, or of requests that were sent before the answer to the first. */
const mostUnread = 65_536;

/**
 * HTTP/1.1 over plain sockets, for GET alone: as much of a server as a Metadata API needs, at a fraction of what Node's own costs
 * per call, so that it does not become the bottleneck of a benchmark. Calls of one connection are answered one after the other.
 */
export class HttpResponder {
  readonly #options: ResponderOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  connectionCount = 0;

  constructor(options: ResponderOptions) {
    this.#options = options;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  /** On loopback only. 0: any free port. */
  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, host: "127.0.0.1", backlog: 4_096 }, () => resolve());
    });
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  #accept(socket: Socket): void {
    this.connectionCount += 1;
    this.#sockets.add(socket);
    const connection = new Connection(socket, this.#options);
    socket.on("data", (chunk: Buffer) => connection.read(chunk));
    socket.on("error", () => {});
    socket.on("timeout", () => socket.destroy());
    socket.on("close", () => {
      this.#sockets.delete(socket);
      connection.gone();
    });
  }
}

class Connection implements Taken {
  path = "/";
  head = "";
  onEnd: () => void = noop;
  readonly #socket: Socket;
  readonly #options: ResponderOptions;
  #unread = "";
  #answered = 0;
  #busy = false;

  constructor(socket: Socket, options: ResponderOptions) {
    this.#socket = socket;
    this.#options = options;
  }

  read(chunk: Buffer): void {
    this.#unread += chunk.toString("latin1");
    if (this.#unread.length > mostUnread) this.#socket.destroy();
    else this.#next();
  }

  gone(): void {
    if (this.#busy) this.#end();
  }

  answer(answer: Answer): void {
    if (!this.#busy || this.#socket.destroyed) return;
    this.#answered += 1;
    const last = this.#isLast();
    // Before the write: what the caller does after its answer must not see this call still under way.
    this.#end();
    write(this.#socket, answer, last);
    if (last) this.#socket.end();
    else this.#proceed();
  }

  hang(): void {}

  reset(): void {
    this.#socket.resetAndDestroy();
  }

  attack(answer: HostileAnswer): void {
    this.#end();
    writeHostile(this.#socket, answer);
    this.#proceed();
  }

  #end(): void {
    this.#busy = false;
    const { onEnd } = this;
    this.onEnd = noop;
    onEnd();
  }

  #proceed(): void {
    const { idleMs } = this.#options.keepAlive();
    if (idleMs !== null) this.#socket.setTimeout(idleMs);
    if (this.#unread !== "") queueMicrotask(() => this.#next());
  }

  #next(): void {
    if (this.#busy || this.#socket.destroyed) return;
    const end = this.#unread.indexOf("\r\n\r\n");
    if (end < 0) return;
    this.head = this.#unread.slice(0, end);
    this.#unread = this.#unread.slice(end + 4);
    this.#busy = true;
    if (this.#options.keepAlive().idleMs !== null) this.#socket.setTimeout(0);
    const request = /^GET (\S+) HTTP\/1\.[01]/.exec(this.head);
    this.path = request?.[1] ?? "/";
    if (request === null) this.#refuse();
    else this.#options.take(this);
  }

  /** Its body, if it has one, would be taken for the next request. */
  #refuse(): void {
    write(this.#socket, { status: 405, headers: "allow: GET\r\n", body: "" }, true);
    this.#busy = false;
    this.#socket.end();
  }

  #isLast(): boolean {
    const { calls } = this.#options.keepAlive();
    return (calls !== null && this.#answered >= calls) || /\r\nconnection: *close|^GET \S+ HTTP\/1\.0/i.test(this.head);
  }
}

const noop = () => {};

function write(socket: Socket, { status, headers, body }: Answer, last: boolean): void {
  const empty = status === 204 || status === 304;
  const length = empty ? 0 : Buffer.byteLength(body);
  const lengthLine = status === 204 ? "" : `content-length: ${length}\r\n`;
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Odd"}\r\n${dateLine()}${headers}${lengthLine}${last ? "connection: close\r\n" : ""}\r\n`;
  if (empty) socket.write(head, "latin1");
  // One write in either case. As many bytes as characters: ASCII.
  else if (typeof body === "string" && length === body.length) socket.write(head + body, "latin1");
  else socket.write(Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]));
}

let date = { second: 0, line: "" };

/** RFC 9110, section 6.6.1: callers count a date in Retry-After from it. */
function dateLine(): string {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== date.second) date = { second, line: `date: ${new Date(second * 1_000).toUTCString()}\r\n` };
  return date.line;
}
