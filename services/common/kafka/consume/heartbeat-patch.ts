import { createRequire } from "node:module";

interface ConsumerGroupPrototype {
  lastRequest: number;
  heartbeat(options: { interval: number }): Promise<void>;
}

let patched = false;

/**
 * kafkajs 2.2.4 spaces heartbeats by the wall clock: set back by an hour, it would be silent for an hour, and put out of its group.
 */
export function patchHeartbeat(): void {
  if (patched) return;
  patched = true;
  const consumerGroup = createRequire(import.meta.url)("kafkajs/src/consumer/consumerGroup.js") as {
    prototype: ConsumerGroupPrototype;
  };
  const original = consumerGroup.prototype.heartbeat;
  consumerGroup.prototype.heartbeat = function (this: ConsumerGroupPrototype, options: { interval: number }): Promise<void> {
    if (this.lastRequest > Date.now()) this.lastRequest = 0;
    return original.call(this, options);
  };
}
