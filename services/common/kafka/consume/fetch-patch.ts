import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { type Fetched, Gathering } from "./gathering.ts";

interface FetchRequest {
  readonly minBytes: number;
  readonly maxWaitTime: number;
  readonly maxBytes: number;
}

interface FetchAnswer {
  readonly responses: readonly { readonly partitions: readonly PartitionAnswer[] }[];
}

interface PartitionAnswer {
  readonly highWatermark: string;
  readonly messages: readonly { readonly offset: string }[];
}

interface BrokerPrototype {
  fetch(request: FetchRequest): Promise<FetchAnswer>;
}

let patched = false;

/**
 * kafkajs 2.2.4 asks every time with the same `minBytes` and `maxWaitTime`. A consumer with a `minBytes` above 1 gathers instead:
 * the first byte will do as long as it is idle, and a busy one waits (gathering.ts). All other consumers ask as before.
 */
export function patchFetch(): void {
  if (patched) return;
  patched = true;
  const { prototype } = createRequire(import.meta.url)("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype };
  const { fetch } = prototype;
  // Every consumer has connections, and with them brokers, of its own.
  const gatherings = new WeakMap<BrokerPrototype, Gathering>();
  prototype.fetch = async function (this: BrokerPrototype, request) {
    const { minBytes, maxWaitTime, maxBytes } = request;
    if (minBytes <= 1) return fetch.call(this, request);
    const gathering = gatherings.get(this) ?? new Gathering({ partitionBytes: minBytes, answerBytes: maxBytes });
    gatherings.set(this, gathering);
    const patience = gathering.patience(performance.now()) ?? { minBytes: 1, maxWaitMs: maxWaitTime };
    const answer = await fetch.call(this, { ...request, minBytes: patience.minBytes, maxWaitTime: patience.maxWaitMs });
    gathering.note({ answeredAtMs: performance.now(), ...sizeOf(answer) });
    return answer;
  };
}

function sizeOf({ responses }: FetchAnswer): Pick<Fetched, "recordCount" | "partitionCount" | "moreIsThere"> {
  const filled = responses.flatMap(({ partitions }) => partitions).filter(({ messages }) => messages.length > 0);
  return {
    recordCount: filled.reduce((sum, { messages }) => sum + messages.length, 0),
    partitionCount: filled.length,
    moreIsThere: filled.some(({ highWatermark, messages }) => Number(messages.at(-1)?.offset) + 1 < Number(highWatermark)),
  };
}
