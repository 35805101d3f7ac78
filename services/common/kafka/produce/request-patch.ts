import { createRequire } from "node:module";

/** What a Produce request carries, as kafkajs hands it to the broker. */
export interface ProduceRequest {
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly messages: readonly ObservedMessage[] }[];
  }[];
}

/** What a broker answered, partition by partition; the whole numbers as text. */
export interface ProduceAnswer {
  readonly topics: readonly {
    readonly topicName: string;
    readonly partitions: readonly {
      readonly partition: number;
      readonly errorCode: number;
      readonly baseOffset: string;
      readonly logAppendTime: string;
    }[];
  }[];
}

/** On the first message of a request: who wants to see it written and answered. */
export const requestObserver = Symbol("requestObserver");

export interface RequestObserver {
  /** `write` puts the request on the connection. */
  observe(request: ProduceRequest, write: () => Promise<ProduceAnswer>): Promise<ProduceAnswer>;
}

interface ObservedMessage {
  readonly [requestObserver]?: RequestObserver;
}

interface BrokerPrototype {
  produce(request: ProduceRequest): Promise<ProduceAnswer>;
}

interface ProduceResponse {
  parse(answer: ProduceAnswer): Promise<ProduceAnswer>;
}

const refusals = new WeakMap<object, ProduceAnswer>();
let patched = false;

/**
 * kafkajs 2.2.4 shows neither the moment a Produce request is written nor, when one partition was refused, what the others
 * answered. Both are to be seen here; what kafkajs does is not changed. Version 7 of the request is the newest it knows and is
 * spoken by every broker since Kafka 2.1.
 */
export function observeProduceRequests(): void {
  if (patched) return;
  patched = true;
  const require = createRequire(import.meta.url);
  const broker = require("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype };
  const response = require("kafkajs/src/protocol/requests/produce/v7/response.js") as ProduceResponse;
  const produce = broker.prototype.produce;
  broker.prototype.produce = function (this: BrokerPrototype, request) {
    const observer = request.topicData[0]?.partitions[0]?.messages[0]?.[requestObserver];
    return observer === undefined ? produce.call(this, request) : observer.observe(request, () => produce.call(this, request));
  };
  const parse = response.parse;
  response.parse = async (answer) => {
    try {
      return await parse(answer);
    } catch (error) {
      if (error instanceof Error) refusals.set(error, answer);
      throw error;
    }
  };
}

/** The whole answer behind an error of `write`, when the broker gave one. */
export function answerBehind(error: unknown): ProduceAnswer | undefined {
  return error instanceof Error ? refusals.get(error) : undefined;
}
