import { createRequire } from "node:module";

interface ConsumerGroupPrototype {
  fetch(nodeId: string): Promise<{ readonly rawMessages: readonly unknown[] }[]>;
}

let patched = false;

/**
 * The answer to a fetch names every partition that was asked for, and kafkajs 2.2.4 sends each through its workers, however empty,
 * only to heartbeat: a fetcher of 60 partitions makes hundreds of promises for one record. An answer without any record heartbeats
 * all the same, and so does the end of a batch. What the log filtered out still goes: it moves the position.
 */
export function patchEmptyBatches(): void {
  if (patched) return;
  patched = true;
  const consumerGroup = createRequire(import.meta.url)("kafkajs/src/consumer/consumerGroup.js") as {
    prototype: ConsumerGroupPrototype;
  };
  const original = consumerGroup.prototype.fetch;
  consumerGroup.prototype.fetch = async function (this: ConsumerGroupPrototype, nodeId) {
    const batches = await original.call(this, nodeId);
    return batches.filter(({ rawMessages }) => rawMessages.length > 0);
  };
}
