import { connect, createServer, type Server, type Socket } from "node:net";

/** A wire to Cassandra that can be cut, and on which answers can be held back. */
export class CassandraProxy {
  readonly #target: { host: string; port: number };
  readonly #pairs = new Set<{ client: Socket; upstream: Socket }>();
  #server: Server | undefined;
  #port = 0;
  #silent = false;

  constructor(contactPoint: string) {
    const [host = "", port = "9042"] = contactPoint.split(":");
    this.#target = { host, port: Number(port) };
  }

  get contactPoint(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** On the same port every time. */
  open(): Promise<void> {
    const server = createServer((client) => this.#join(client));
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", () => {
        const address = server.address();
        if (typeof address === "object" && address !== null) this.#port = address.port;
        resolve();
      });
    });
  }

  /** Requests still arrive, answers do not. */
  holdAnswers(): void {
    this.#silent = true;
    for (const { upstream } of this.#pairs) upstream.pause();
  }

  releaseAnswers(): void {
    this.#silent = false;
    for (const { upstream } of this.#pairs) upstream.resume();
  }

  /** Nothing listens any more and every connection is gone. */
  cut(): Promise<void> {
    for (const { client, upstream } of this.#pairs) {
      client.destroy();
      upstream.destroy();
    }
    return new Promise((resolve) => (this.#server === undefined ? resolve() : this.#server.close(() => resolve())));
  }

  #join(client: Socket): void {
    const upstream = connect(this.#target);
    const pair = { client, upstream };
    this.#pairs.add(pair);
    client.on("data", (bytes) => void upstream.write(bytes));
    upstream.on("data", (bytes) => void client.write(bytes));
    if (this.#silent) upstream.pause();
    for (const [socket, other] of [[client, upstream] as const, [upstream, client] as const]) {
      socket.on("error", () => other.destroy());
      socket.on("close", () => {
        this.#pairs.delete(pair);
        other.destroy();
      });
    }
  }
}
