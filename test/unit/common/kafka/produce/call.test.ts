import type { ProducerBatch, RecordMetadata } from "kafkajs";
import { describe, expect, it } from "vitest";
import { type CallPart, produceCall } from "../../../../../services/common/kafka/produce/call.ts";
import {
  type CarrierMessage,
  carried,
  type ProduceAnswer,
  type ProduceRequest,
} from "../../../../../services/common/kafka/produce/request-patch.ts";

const noSuchBroker = () => Promise.reject(new Error("no such broker"));

/**
 * The way of a call through kafkajs with several brokers, of which the local stack has only one: each partition is led by a
 * broker of its own, and `sendBatch` rejects with the first of them that fails, the others still at work.
 */
function producerOver(brokers: Readonly<Record<number, () => Promise<ProduceAnswer>>>) {
  return {
    async sendBatch({ topicMessages = [] }: ProducerBatch): Promise<RecordMetadata[]> {
      const [{ topic, messages } = { topic: "", messages: [] }] = topicMessages;
      const requests = messages.map(async (message: (typeof messages)[number] & CarrierMessage) => {
        const partition = message.partition ?? 0;
        const request: ProduceRequest = { topicData: [{ topic, partitions: [{ partition, messages: [message] }] }] };
        return message[carried]?.observer.observe(request, brokers[partition] ?? noSuchBroker);
      });
      await Promise.all(requests);
      return [];
    },
  };
}

function partOf(partition: number): CallPart {
  return { topic: "topic", partition, records: [Buffer.from("a record")] };
}

function answerOf(partition: number, errorCode = 0, baseOffset = "41"): ProduceAnswer {
  return { topics: [{ topicName: "topic", partitions: [{ partition, errorCode, baseOffset, logAppendTime: "5" }] }] };
}

const always = { ackTimeoutMs: 100, stuckAfterMs: 60_000, mayLeave: () => true };
const acknowledged = { state: "answered", errorCode: 0, baseOffset: 41, appendTimeMs: 5 };

function later<T>(value: T): Promise<T> {
  return new Promise((resolve) => setImmediate(() => resolve(value)));
}

describe("a call to several brokers", () => {
  it("tells what each answered, though the first to fail ends it for kafkajs", async () => {
    const lost = new Error("connection closed");
    const producer = producerOver({
      0: () => Promise.reject(lost),
      1: () => later(answerOf(1)),
      2: () => later(answerOf(2, 19, "-1")),
    });
    const result = await produceCall(producer, [partOf(0), partOf(1), partOf(2)], always);
    expect(result).toEqual({
      answers: [{ state: "unanswered" }, acknowledged, { state: "answered", errorCode: 19, baseOffset: -1, appendTimeMs: 5 }],
      error: lost,
      stuck: false,
    });
  });

  it("tells that a request was kept when its connection was gone before it was written", async () => {
    const gone = Object.assign(new Error("Not connected"), { name: "KafkaJSConnectionError" });
    const producer = producerOver({ 0: () => Promise.reject(gone), 1: () => later(answerOf(1)) });
    const { answers } = await produceCall(producer, [partOf(0), partOf(1)], always);
    expect(answers).toEqual([{ state: "kept", recalled: false }, acknowledged]);
  });

  it("lets no request leave once one was recalled, and those that left be answered", async () => {
    const written: number[] = [];
    const writing = (partition: number) => () => {
      written.push(partition);
      return later(answerOf(partition));
    };
    const producer = producerOver({ 0: writing(0), 1: writing(1), 2: writing(2) });
    const mayLeave = ([part]: readonly CallPart[]) => part?.partition !== 1;
    const { answers } = await produceCall(producer, [partOf(0), partOf(1), partOf(2)], { ...always, mayLeave });
    expect(written).toEqual([0]);
    expect(answers).toEqual([acknowledged, { state: "kept", recalled: true }, { state: "kept", recalled: true }]);
  });

  it("asks for exactly the parts of a request", async () => {
    const asked: CallPart[][] = [];
    const parts = [partOf(0), partOf(1)];
    const producer = producerOver({ 0: () => later(answerOf(0)), 1: () => later(answerOf(1)) });
    await produceCall(producer, parts, { ...always, mayLeave: (leaving) => asked.push([...leaving]) > 0 });
    expect(asked).toEqual(parts.map((part) => [part]));
  });
});

describe("a call that kafkajs never comes back from", () => {
  it("ends, and what has not left by then never leaves", async () => {
    let written = false;
    let goOn: () => void = () => undefined;
    const looking = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const inner = producerOver({
      0: () => {
        written = true;
        return later(answerOf(0));
      },
    });
    let ended: Promise<unknown> = Promise.resolve();
    const producer = {
      sendBatch(batch: ProducerBatch) {
        const sent = looking.then(() => inner.sendBatch(batch));
        ended = sent.catch((error: unknown) => error);
        return sent;
      },
    };
    const result = await produceCall(producer, [partOf(0)], { ...always, stuckAfterMs: 20 });
    expect(result).toMatchObject({ answers: [{ state: "kept", recalled: false }], stuck: true });
    goOn();
    expect(await ended).toBeInstanceOf(Error);
    expect(written).toBe(false);
  });
});

it("tells that a part was kept when kafkajs dropped it without a word: it knows no such partition", async () => {
  const producer = { sendBatch: () => Promise.resolve([]) };
  const result = await produceCall(producer, [partOf(0)], always);
  expect(result).toEqual({ answers: [{ state: "kept", recalled: false }], error: undefined, stuck: false });
});
