import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, it } from "vitest";
import { batchOverheadBytes, recordBytes } from "../../../../../services/common/kafka/produce/record-size.ts";

const require = createRequire(import.meta.url);
const encodeRecord = require("kafkajs/src/protocol/recordBatch/record/v0/index.js") as (record: object) => object;
const { RecordBatch } = require("kafkajs/src/protocol/recordBatch/v0/index.js") as {
  RecordBatch(batch: object): Promise<{ size(): number }>;
};

const headerValue = fc.oneof(fc.string({ unit: "binary" }), fc.uint8Array({ maxLength: 200 }).map(Buffer.from));
const recordOf = (valueBytes: fc.Arbitrary<number>) =>
  fc.record({
    topic: fc.constant("any"),
    key: fc.string({ unit: "binary", maxLength: 100 }),
    value: valueBytes.map((length) => Buffer.alloc(length)),
    headers: fc.dictionary(fc.string({ unit: "binary" }), headerValue, { maxKeys: 5, noNullPrototype: true }),
  });

it("knows to the byte what a record will take in a batch of its own", async () => {
  const lengths = fc.oneof(fc.nat(300), fc.constantFrom(63, 64, 8_191, 8_192, 1_048_575, 1_048_576, 2_097_152));
  await fc.assert(
    fc.asyncProperty(recordOf(lengths), async (record) => {
      const batch = await RecordBatch({ records: [encodeRecord({ ...record, offsetDelta: 0, timestampDelta: 0 })] });
      expect(batchOverheadBytes + recordBytes(record)).toBe(batch.size());
    }),
  );
});

it("counts a record without headers as one with none", () => {
  const record = { topic: "any", key: "key", value: Buffer.alloc(10) };
  expect(recordBytes(record)).toBe(recordBytes({ ...record, headers: {} }));
});
