import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";
import { decodeFetchAnswer, type FetchAnswer } from "./fetch-answer.ts";
import { type Fetched, Gathering } from "./gathering.ts";

interface FetchRequest {
  readonly minBytes: number;
  readonly maxWaitTime: number;
  readonly maxBytes: number;
}

interface FetchResponse {
  decode(payload: Buffer): Promise<FetchAnswer>;
}

interface BrokerPrototype {
  fetch(request: FetchRequest): Promise<FetchAnswer>;
}

let patched = false;

/**
 * Two things of kafkajs 2.2.4 are done here. It asks every time with the same `minBytes` and `maxWaitTime`: a consumer with a `minBytes`
 * above 1 gathers instead, for which the first byte will do as long as it is idle, and which waits when it is busy (gathering.ts). And
 * it takes several microseconds to read a record: what it is answered is read in fetch-answer.ts, as far as that can read it.
 */
export function patchFetch(): void {
  if (patched) return;
  patched = true;
  const require = createRequire(import.meta.url);
  gather(require("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype });
  readAnswers(require("kafkajs/src/protocol/requests/fetch/v11/response.js") as FetchResponse);
}

function readAnswers(response: FetchResponse): void {
  const { decode } = response;
  response.decode = async (payload) => decodeFetchAnswer(payload) ?? decode(payload);
}

function gather({ prototype }: { prototype: BrokerPrototype }): void {
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
