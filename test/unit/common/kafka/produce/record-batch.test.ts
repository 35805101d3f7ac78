import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, it } from "vitest";
import { batchBytes, encodeRecord, recordBytes, writeBatch } from "../../../../../services/common/kafka/produce/record-batch.ts";

const require = createRequire(import.meta.url);
const kafkajsRecord = require("kafkajs/src/protocol/recordBatch/record/v0/index.js") as (record: object) => object;
const { RecordBatch } = require("kafkajs/src/protocol/recordBatch/v0/index.js") as {
  RecordBatch(batch: object): Promise<{ readonly buffer: Buffer }>;
};

const text = fc.string({ unit: "binary", maxLength: 100 });
const bytes = fc.uint8Array({ maxLength: 200 }).map((content) => Buffer.from(content));
// Around every length at which a varint takes another byte.
const valueBytes = fc.oneof(fc.nat(300), fc.constantFrom(63, 64, 8_191, 8_192, 1_048_575, 1_048_576, 2_097_152));
const record = fc.record({
  topic: fc.constant("any"),
  key: text,
  value: valueBytes.map((length) => Buffer.alloc(length, "value")),
  headers: fc.dictionary(text, fc.oneof(text, bytes), { maxKeys: 5, noNullPrototype: true }),
});

async function batchOfKafkajs(records: readonly object[], timestampMs: number): Promise<Buffer> {
  const encoded = records.map((one, offsetDelta) => kafkajsRecord({ ...one, offsetDelta, timestampDelta: 0 }));
  const times = { firstTimestamp: timestampMs, maxTimestamp: timestampMs };
  return (await RecordBatch({ records: encoded, lastOffsetDelta: encoded.length - 1, ...times })).buffer;
}

function batchOf(records: readonly Buffer[], timestampMs: number, start = 0): Buffer {
  const target = Buffer.alloc(start + batchBytes(records), 0xff);
  expect(writeBatch(target, start, { records, timestampMs })).toBe(target.length);
  return target.subarray(start);
}

it("writes the batch that kafkajs writes, byte for byte, wherever it begins", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 5 }),
      fc.nat(3),
      fc.nat(),
      async (records, start, timestampMs) => {
        const batch = batchOf(records.map(encodeRecord), timestampMs, start);
        expect(batch.equals(await batchOfKafkajs(records, timestampMs))).toBe(true);
      },
    ),
  );
});

it("numbers the records of a batch as large as a call, past the lengths of one and of two bytes", async () => {
  const records = Array.from({ length: 8_200 }, (_, index) => ({
    topic: "any",
    key: `k${index}`,
    value: Buffer.from([index & 255]),
  }));
  const batch = batchOf(records.map(encodeRecord), 1_700_000_000_000);
  expect(batch.equals(await batchOfKafkajs(records, 1_700_000_000_000))).toBe(true);
});

it("knows to the byte what a record takes in a batch of its own, and at most two more further back", () => {
  fc.assert(
    fc.property(record, fc.nat(8_191), (one, place) => {
      const encoded = encodeRecord(one);
      expect(batchBytes([encoded])).toBe(batchOf([encoded], 0).length);
      expect(recordBytes(encoded, place) - recordBytes(encoded)).toBeLessThanOrEqual(2);
    }),
  );
});

it("takes a record without headers for one with none", () => {
  const one = { topic: "any", key: "key", value: Buffer.alloc(10) };
  expect(encodeRecord(one)).toEqual(encodeRecord({ ...one, headers: {} }));
});
