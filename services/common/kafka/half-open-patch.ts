import { createRequire } from "node:module";

interface BrokerPrototype {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
}

let patched = false;

/**
 * kafkajs 2.2.4 asks a broker for its versions once its connection is open. When no answer comes, the connection stays open, counts as
 * connected, and the broker is never asked again: from then on every request to it fails with "Broker not connected", for as long as
 * the process lives. A connection whose beginning has failed is closed here, so that the next one begins anew.
 */
export function patchHalfOpenConnections(): void {
  if (patched) return;
  patched = true;
  const { prototype } = createRequire(import.meta.url)("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype };
  const { connect } = prototype;
  prototype.connect = async function (this: BrokerPrototype): Promise<void> {
    try {
      await connect.call(this);
    } catch (error) {
      await this.disconnect();
      throw error;
    }
  };
}
