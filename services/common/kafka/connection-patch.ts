import { createRequire } from "node:module";

interface BrokerPrototype {
  isConnected(): boolean;
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

interface ConnectionPrototype {
  isConnected(): boolean;
  connect(): Promise<unknown>;
  /** What has come of an answer that is not whole yet. */
  chunks: Buffer[];
  bytesBuffered: number;
  bytesNeeded: number;
}

const lengthBytes = 4;
let patched = false;

/** Two ways in which a connection of kafkajs 2.2.4 is useless for as long as the process lives. */
export function patchConnections(): void {
  if (patched) return;
  patched = true;
  const require = createRequire(import.meta.url);
  closeHalfOpen(require("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype });
  forgetBrokenOff(require("kafkajs/src/network/connection.js") as { prototype: ConnectionPrototype });
}

/**
 * It asks a broker for its versions once its connection is open. When no answer comes, the connection stays open, counts as connected,
 * and the broker is never asked again: every request to it fails with "Broker not connected". A connection whose beginning has failed
 * is closed here, so that the next one begins anew.
 */
function closeHalfOpen({ prototype }: { prototype: BrokerPrototype }): void {
  const { connect } = prototype;
  prototype.connect = async function (this: BrokerPrototype): Promise<void> {
    try {
      await connect.call(this);
    } catch (error) {
      // Only then: each time that a closed one is closed again, its socket keeps a listener more.
      if (this.isConnected()) await this.disconnect();
      throw error;
    }
  };
}

/** The beginning of an answer that broke off stays, and the next connection's answers are read as its end: none is ever understood. */
function forgetBrokenOff({ prototype }: { prototype: ConnectionPrototype }): void {
  const { connect } = prototype;
  prototype.connect = function (this: ConnectionPrototype): Promise<unknown> {
    if (!this.isConnected()) {
      this.chunks = [];
      this.bytesBuffered = 0;
      this.bytesNeeded = lengthBytes;
    }
    return connect.call(this);
  };
}
