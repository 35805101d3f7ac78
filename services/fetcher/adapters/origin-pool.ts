import type { Socket } from "node:net";
import { Client } from "undici";
import type { Connect } from "./connector.ts";

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

  constructor(origin: string, connect: Connect) {
    this.client = new Client(origin, {
      connect: (target, callback) => {
        this.#connecting = connect(target, (...answer) => {
          this.#connecting = undefined;
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

  /** At once, also when it is not open yet. */
  destroy(): void {
    void this.client.destroy();
    this.#connecting?.destroy();
  }
}

/** The connections to one origin for one project. How many there are is up to the calls under way. */
export class OriginPool {
  readonly #origin: string;
  readonly #connect: Connect;
  readonly #idle: Connection[] = [];
  #closed = false;

  constructor(origin: string, connect: Connect) {
    this.#origin = origin;
    this.#connect = connect;
  }

  /** The one used last first: the others may go cold. */
  take(): Connection {
    return this.#idle.pop() ?? new Connection(this.#origin, this.#connect);
  }

  giveBack(connection: Connection): void {
    if (this.#closed) connection.destroy();
    else this.#idle.push(connection);
  }

  /** Calls under way go on; their connections are destroyed when they are given back. */
  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }
}
