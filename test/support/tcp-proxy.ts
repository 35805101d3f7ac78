import { connect, createServer, type Server, type Socket } from "node:net";

export type Direction = "toServer" | "toClient";

/** What is wrong with the wire, in one direction. */
export interface LinkFaults {
  /** Every byte arrives so much later. */
  readonly latencyMs?: number;
  readonly bytesPerSecond?: number;
  /** The connection is reset once so many more bytes have passed; 0: at the next one, which does not arrive. */
  readonly cutAfterBytes?: number;
  /** Nothing arrives, and nobody is told. What was sent meanwhile arrives when it is over, as TCP sends it again. */
  readonly blackHole?: boolean;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** A wire between a client and a server on which things go wrong when told to, for the connections of now and later ones. */
export class TcpProxy {
  readonly #target: Target;
  readonly #pairs = new Set<Pair>();
  readonly #faults: Record<Direction, LinkFaults> = { toServer: {}, toClient: {} };
  #server: Server | undefined;
  #port: number;

  /** `port`: 0 for the kernel's choice. It stays the same over `down` and `up`. */
  static async open(target: Target, port = 0): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, port);
    await proxy.up();
    return proxy;
  }

  /** `address`: host and port, as the services' settings have them. */
  static to(address: string): Promise<TcpProxy> {
    const [host = "", port = ""] = address.split(":");
    return TcpProxy.open({ host, port: Number(port) });
  }

  private constructor(target: Target, port: number) {
    this.#target = target;
    this.#port = port;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** In place of whatever was wrong in this direction. */
  inject(direction: Direction, faults: LinkFaults): void {
    this.#faults[direction] = faults;
    for (const pair of this.#pairs) pair[direction].suffer(faults);
  }

  heal(): void {
    this.inject("toServer", {});
    this.inject("toClient", {});
  }

  /** Every connection of now ends with a reset; new ones can be made. */
  reset(): void {
    for (const pair of this.#pairs) pair.reset();
  }

  /** Nothing listens any more, and every connection is reset. */
  async down(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
    this.reset();
    await closed;
  }

  up(): Promise<void> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#join(client));
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

  #join(client: Socket): void {
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const pair = new Pair(client, server, this.#faults);
    this.#pairs.add(pair);
    for (const socket of [client, server]) {
      socket.on("close", () => {
        if (client.destroyed && server.destroyed) this.#pairs.delete(pair);
      });
    }
  }
}

/** One client's connection, and the one to the server that was made for it. */
class Pair {
  readonly toServer: Link;
  readonly toClient: Link;

  constructor(client: Socket, server: Socket, faults: Readonly<Record<Direction, LinkFaults>>) {
    const reset = () => this.reset();
    this.toServer = new Link(client, server, { faults: faults.toServer, reset });
    this.toClient = new Link(server, client, { faults: faults.toClient, reset });
  }

  reset(): void {
    this.toServer.from.resetAndDestroy();
    this.toClient.from.resetAndDestroy();
  }
}

/** So much is taken from a sender whose bytes wait, as the buffers of two kernels would. */
const heldBytes = 1024 * 1024;
const sliceMs = 20;

/** One direction of one connection. What goes wrong with it decides when the oldest bytes may go on. */
class Link {
  readonly from: Socket;
  readonly #to: Socket;
  readonly #reset: () => void;
  readonly #waiting: { bytes: Buffer; arrivedMs: number }[] = [];
  #faults: LinkFaults;
  #leftToCut: number;
  #waitingBytes = 0;
  #ended = false;
  /** The wire is busy with what was sent last until then. */
  #freeAtMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(from: Socket, to: Socket, { faults, reset }: { faults: LinkFaults; reset: () => void }) {
    this.from = from;
    this.#to = to;
    this.#reset = reset;
    this.#faults = faults;
    this.#leftToCut = faults.cutAfterBytes ?? Number.POSITIVE_INFINITY;
    from.on("data", (bytes: Buffer) => this.#take(bytes));
    from.on("end", () => {
      this.#ended = true;
      this.#pump();
    });
    from.on("error", reset);
    from.on("close", () => {
      clearTimeout(this.#timer);
      if (!this.#ended) to.destroy();
    });
    to.on("drain", () => this.#pump());
  }

  suffer(faults: LinkFaults): void {
    this.#faults = faults;
    this.#leftToCut = faults.cutAfterBytes ?? Number.POSITIVE_INFINITY;
    this.#pump();
  }

  #take(bytes: Buffer): void {
    this.#waiting.push({ bytes, arrivedMs: performance.now() });
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > heldBytes) this.from.pause();
    this.#pump();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    while (!this.#faults.blackHole && !this.#to.writableNeedDrain && !this.#to.destroyed) {
      const [oldest] = this.#waiting;
      if (oldest === undefined) break;
      const dueMs = Math.max(oldest.arrivedMs + (this.#faults.latencyMs ?? 0), this.#freeAtMs);
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), waitMs);
        return;
      }
      this.#pass(oldest.bytes);
    }
    if (this.#waitingBytes <= heldBytes) this.from.resume();
    if (this.#ended && this.#waiting.length === 0) this.#to.end();
  }

  /** As much of the oldest bytes as the wire takes at once. */
  #pass(bytes: Buffer): void {
    const { bytesPerSecond } = this.#faults;
    const most = bytesPerSecond === undefined ? bytes.length : Math.max(1, Math.ceil((bytesPerSecond * sliceMs) / 1_000));
    const passing = bytes.subarray(0, Math.min(most, this.#leftToCut));
    const left = bytes.subarray(passing.length);
    if (left.length === 0) this.#waiting.shift();
    else if (this.#waiting[0] !== undefined) this.#waiting[0].bytes = left;
    this.#waitingBytes -= passing.length;
    this.#leftToCut -= passing.length;
    if (bytesPerSecond !== undefined) this.#freeAtMs = performance.now() + (passing.length / bytesPerSecond) * 1_000;
    if (this.#leftToCut > 0) this.#to.write(passing);
    else if (passing.length > 0) this.#to.write(passing, () => this.#reset());
    else this.#reset();
  }
}
