import type { Socket } from "node:net";
import { Client } from "undici";
import type { Connect } from "./connector.ts";
import type { Openings } from "./openings.ts";

/**
 * An idle connection is closed after a second, whatever the server offers. A call on a connection that its server is just closing
 * fails, and may not be repeated unseen (README, The call to the Metadata API, attempts): no common server closes one so soon.
 */
const idleMs = 1_000;
const headerBytes = 16_384;

/** One connection, for one call at a time; reconnects by itself when the last one was closed in good order. */
export class Connection {
  readonly client: Client;
  #connecting: Socket | undefined;
  #socket: Socket | undefined;
  #receivedBefore = 0;

  constructor(origin: string, connect: Connect) {
    this.client = new Client(origin, {
      connect: (target, callback) => {
        this.#connecting = connect(target, (...answer) => {
          this.#connecting = undefined;
          this.#socket = answer[1] ?? undefined;
          this.#receivedBefore = 0;
          callback(...answer);
        });
      },
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: headerBytes,
      keepAliveTimeout: idleMs,
      keepAliveMaxTimeout: idleMs,
      keepAliveTimeoutThreshold: idleMs,
      // One deadline over everything is kept elsewhere; these would each start anew.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** On the wire, by the call under way. */
  get receivedBytes(): number {
    return (this.#socket?.bytesRead ?? 0) - this.#receivedBefore;
  }

  endCall(): void {
    this.#receivedBefore = this.#socket?.bytesRead ?? 0;
  }

  /** At once, also when it is not open yet. */
  destroy(): void {
    void this.client.destroy();
    this.#connecting?.destroy();
  }
}

/** The idle connections of all pools together: each is a file descriptor of this process. */
export interface IdleCount {
  now: number;
  readonly most: number;
}

/** What all pools share. */
export interface PoolSurroundings {
  readonly idleCount: IdleCount;
  readonly openings: Openings;
}

type Begin = (connection: Connection) => void;

/** The connections to one origin for one project. How many there are is up to the calls under way. */
export class OriginPool {
  readonly #origin: string;
  readonly #connect: Connect;
  readonly #idleCount: IdleCount;
  readonly #openings: Openings;
  readonly #idle: Connection[] = [];
  /** Calls without a connection, the oldest first, and how each would open one. */
  readonly #waiting = new Map<Begin, () => void>();
  #closed = false;

  constructor(origin: string, connect: Connect, { idleCount, openings }: PoolSurroundings) {
    this.#origin = origin;
    this.#connect = connect;
    this.#idleCount = idleCount;
    this.#openings = openings;
  }

  /** Calls `begin` once, with an idle connection at once, else with the first that becomes free or may be opened. */
  use(begin: Begin): void {
    // The one used last: the others may go cold.
    const idle = this.#idle.pop();
    if (idle === undefined) this.#wait(begin);
    else {
      this.#idleCount.now -= 1;
      begin(idle);
    }
  }

  giveBack(connection: Connection): void {
    connection.endCall();
    const [next] = this.#waiting;
    if (next !== undefined) this.#passOn(connection, next);
    else if (this.#closed || this.#idleCount.now >= this.#idleCount.most) connection.destroy();
    else {
      this.#idle.push(connection);
      this.#idleCount.now += 1;
    }
  }

  /** Calls under way go on; their connections are destroyed when they are given back. */
  close(): void {
    this.#closed = true;
    this.#idleCount.now -= this.#idle.length;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  #wait(begin: Begin): void {
    const open = (): void => {
      this.#waiting.delete(begin);
      begin(this.#open());
    };
    this.#waiting.set(begin, open);
    this.#openings.ask(open);
  }

  /** Not before undici is done with the answer: with a request at hand it would not look for bytes that nobody asked for. */
  #passOn(connection: Connection, [begin, open]: [Begin, () => void]): void {
    this.#waiting.delete(begin);
    this.#openings.giveUp(open);
    queueMicrotask(() => begin(connection));
  }

  #open(): Connection {
    const connection = new Connection(this.#origin, this.#connect);
    connection.client.on("disconnect", () => this.#forget(connection));
    return connection;
  }

  /** A connection that was closed while idle. Kept, the most there ever were to each origin would be kept for ever. */
  #forget(connection: Connection): void {
    const index = this.#idle.indexOf(connection);
    if (index === -1) return;
    this.#idle.splice(index, 1);
    this.#idleCount.now -= 1;
  }
}
