import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { encodeRecord } from "../../../../../services/common/kafka/produce/record-batch.ts";
import {
  carried,
  encodeProduceRequest,
  patchProduceRequests,
} from "../../../../../services/common/kafka/produce/request-patch.ts";

const require = createRequire(import.meta.url);
type Options = { acks: number; timeout: number; topicData: readonly object[] };
const ofKafkajs = require("kafkajs/src/protocol/requests/produce/v7/request.js") as (options: Options) => {
  encode(): Promise<{ readonly buffer: Buffer }>;
};
const produce = require("kafkajs/src/protocol/requests/produce/index.js") as {
  protocol(which: { version: number }): (options: Options) => { request: { encode(): Promise<{ readonly buffer: Buffer }> } };
};

const observer = { observe: () => Promise.reject(new Error("not asked")) };
const keys = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index}`);
const contents = [
  {
    topic: "états",
    partitions: [
      { partition: 3, keys: keys("a", 2) },
      { partition: 11, keys: keys("b", 100) },
    ],
  },
  { topic: "other", partitions: [{ partition: 0, keys: ["c"] }] },
];

/** The same records as kafkajs' own messages, and as carriers. */
function requestsOf(timestampMs: number) {
  const recordOf = (topic: string, key: string) => ({
    topic,
    key,
    value: Buffer.from(`value of ${key}`),
    headers: { name: key },
  });
  const made = contents.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map((part) => ({ ...part, records: part.keys.map((key) => recordOf(topic, key)) })),
  }));
  const plain = made.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, records }) => ({
      partition,
      firstSequence: 0,
      messages: records.map(({ key, value, headers }) => ({ key, value, headers, timestamp: timestampMs })),
    })),
  }));
  const carriers = made.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map(({ partition, records }) => ({
      partition,
      messages: [{ [carried]: { records: records.map(encodeRecord), observer } }],
    })),
  }));
  return { plain, carriers };
}

it("writes the request that kafkajs writes, byte for byte", async () => {
  const { plain, carriers } = requestsOf(1_700_000_000_000);
  const expected = await ofKafkajs({ acks: -1, timeout: 6_000, topicData: plain }).encode();
  const written = encodeProduceRequest({ acks: -1, timeout: 6_000, topicData: carriers }, 1_700_000_000_000);
  expect(written.equals(expected.buffer)).toBe(true);
});

it("leaves the requests of other producers to kafkajs", async () => {
  patchProduceRequests();
  const { plain } = requestsOf(1_700_000_000_000);
  const expected = await ofKafkajs({ acks: 1, timeout: 10, topicData: plain }).encode();
  const { request } = produce.protocol({ version: 7 })({ acks: 1, timeout: 10, topicData: plain });
  expect((await request.encode()).buffer.equals(expected.buffer)).toBe(true);
});

it("refuses to send carriers by a version whose layout it does not write: they would arrive empty", () => {
  patchProduceRequests();
  const { carriers } = requestsOf(0);
  expect(() => produce.protocol({ version: 2 })({ acks: -1, timeout: 10, topicData: carriers })).toThrow("version 2 of Produce");
});
