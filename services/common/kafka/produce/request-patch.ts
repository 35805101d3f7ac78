import { createRequire } from "node:module";
import { batchBytes, writeBatch } from "./record-batch.ts";

/** What a Produce request carries, as kafkajs hands it to the broker. */
export interface ProduceRequest {
  readonly topicData: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number; readonly messages: readonly CarrierMessage[] }[];
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

export interface RequestObserver {
  /** `write` puts the request on the connection. */
  observe(request: ProduceRequest, write: () => Promise<ProduceAnswer>): Promise<ProduceAnswer>;
}

export const carried = Symbol("carried");

/** All records of a partition: one message for kafkajs, which would group them in quadratic time and encode each with many buffers. */
export interface CarrierMessage {
  readonly [carried]?: {
    /** From their keys on: record-batch.ts. */
    readonly records: readonly Buffer[];
    /** Who wants to see the request written and answered. */
    readonly observer: RequestObserver;
  };
}

interface BrokerPrototype {
  produce(request: ProduceRequest): Promise<ProduceAnswer>;
}

interface ProduceResponse {
  parse(answer: ProduceAnswer): Promise<ProduceAnswer>;
}

interface ProduceOptions extends ProduceRequest {
  readonly acks: number;
  readonly timeout: number;
}

interface EncodedRequest {
  readonly request: { readonly encode: () => Promise<unknown> };
}

interface ProduceDefinition {
  protocol(which: { version: number }): (options: ProduceOptions) => EncodedRequest;
}

/** The newest that kafkajs knows, and spoken by every broker since Kafka 2.1. */
const apiVersion = 7;
const refusals = new WeakMap<object, ProduceAnswer>();
let patched = false;

/**
 * kafkajs 2.2.4 shows neither the moment a Produce request is written nor, when one partition was refused, what the others
 * answered. Both are to be seen here. A request of carrier messages is encoded here as well; others are left to kafkajs.
 */
export function patchProduceRequests(): void {
  if (patched) return;
  patched = true;
  const require = createRequire(import.meta.url);
  observeWrites(require("kafkajs/src/broker/index.js") as { prototype: BrokerPrototype });
  keepRefusals(require("kafkajs/src/protocol/requests/produce/v7/response.js") as ProduceResponse);
  encodeCarriers(require("kafkajs/src/protocol/requests/produce/index.js") as ProduceDefinition);
}

function observeWrites({ prototype }: { prototype: BrokerPrototype }): void {
  const { produce } = prototype;
  prototype.produce = function (this: BrokerPrototype, request) {
    const observer = request.topicData[0]?.partitions[0]?.messages[0]?.[carried]?.observer;
    return observer === undefined ? produce.call(this, request) : observer.observe(request, () => produce.call(this, request));
  };
}

function keepRefusals(response: ProduceResponse): void {
  const { parse } = response;
  response.parse = async (answer) => {
    try {
      return await parse(answer);
    } catch (error) {
      if (error instanceof Error) refusals.set(error, answer);
      throw error;
    }
  };
}

function encodeCarriers(definition: ProduceDefinition): void {
  const { protocol } = definition;
  definition.protocol = ({ version }) => {
    const build = protocol({ version });
    return (options) => {
      const built = build(options);
      if (options.topicData[0]?.partitions[0]?.messages[0]?.[carried] === undefined) return built;
      if (version !== apiVersion) throw new Error(`the broker speaks version ${version} of Produce, below ${apiVersion}`);
      return { ...built, request: { ...built.request, encode: () => Promise.resolve(encoded(options)) } };
    };
  };
}

/** What kafkajs takes from an encoder. */
function encoded(options: ProduceOptions): { readonly buf: Buffer; readonly buffer: Buffer } {
  const buffer = encodeProduceRequest(options, Date.now());
  return { buf: buffer, buffer };
}

/** The body of a Produce request without a transaction, by https://kafka.apache.org/protocol#The_Messages_Produce. */
export function encodeProduceRequest({ acks, timeout, topicData }: ProduceOptions, timestampMs: number): Buffer {
  const topics = topicData.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, messages }) => ({ partition, records: recordsOf(messages) })),
  }));
  const partitionsBytes = topics.flatMap(({ partitions }) => partitions.map(({ records }) => 8 + batchBytes(records)));
  const namesBytes = topics.map(({ topic }) => 6 + Buffer.byteLength(topic));
  const body = Buffer.allocUnsafe([...partitionsBytes, ...namesBytes].reduce((sum, bytes) => sum + bytes, 12));
  let at = body.writeInt16BE(-1, 0);
  at = body.writeInt16BE(acks, at);
  at = body.writeInt32BE(timeout, at);
  at = body.writeInt32BE(topics.length, at);
  for (const { topic, partitions } of topics) {
    at = body.writeInt16BE(Buffer.byteLength(topic), at);
    at += body.write(topic, at);
    at = body.writeInt32BE(partitions.length, at);
    for (const { partition, records } of partitions) {
      const start = at + 8;
      body.writeInt32BE(partition, at);
      at = writeBatch(body, start, { records, timestampMs });
      body.writeInt32BE(at - start, start - 4);
    }
  }
  return body;
}

function recordsOf(messages: readonly CarrierMessage[]): readonly Buffer[] {
  return messages.flatMap((message) => {
    if (message[carried] === undefined) throw new Error("a message among carriers that carries nothing");
    return message[carried].records;
  });
}

/** The whole answer behind an error of `write`, when the broker gave one. */
export function answerBehind(error: unknown): ProduceAnswer | undefined {
  return error instanceof Error ? refusals.get(error) : undefined;
}
