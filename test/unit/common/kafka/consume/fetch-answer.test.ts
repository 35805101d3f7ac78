import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeFetchAnswer } from "../../../../../services/common/kafka/consume/fetch-answer.ts";
import { encodeRecord, writeBatch } from "../../../../../services/common/kafka/produce/record-batch.ts";

const require = createRequire(import.meta.url);
const kafkajs = require("kafkajs/src/protocol/requests/fetch/v11/response.js") as { decode(payload: Buffer): Promise<object> };
const kafkajsRecord = require("kafkajs/src/protocol/recordBatch/record/v0/index.js") as (record: object) => object;
const { RecordBatch } = require("kafkajs/src/protocol/recordBatch/v0/index.js") as {
  RecordBatch(batch: object): Promise<{ readonly buffer: Buffer }>;
};

const farthest = 2 ** 50;
const attributes = { compressed: 1, logAppendTime: 8, transactional: 16, control: 32 };
/** Where the attributes of a batch stand. */
const attributesAt = 21;
const formatAt = 16;

const bytes = fc.uint8Array({ maxLength: 80 }).map((content) => Buffer.from(content));
// kafkajs takes what every object inherits for a value that was given before.
const name = fc.string({ unit: "binary", maxLength: 20 }).filter((text) => !(text in Object.prototype));
const batch = fc.record({
  firstOffset: fc.nat(farthest),
  firstTimestamp: fc.nat(farthest),
  maxTimestamp: fc.nat(farthest),
  flags: fc.subarray(Object.values(attributes).slice(1)),
  gaps: fc.array(fc.nat(3), { maxLength: 4 }),
  records: fc.array(
    fc.record({
      key: fc.oneof(fc.constant(null), fc.constantFrom(Buffer.from("7"), Buffer.from("8")), bytes),
      value: fc.oneof(fc.constant(null), bytes),
      headers: fc.dictionary(name, bytes, { maxKeys: 3, noNullPrototype: true }),
      timestampDelta: fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
    }),
    { maxLength: 5 },
  ),
});
type Batch = typeof batch extends fc.Arbitrary<infer B> ? B : never;

const partition = fc.record({
  partition: fc.nat(100),
  errorCode: fc.constantFrom(0, 1),
  highWatermark: fc.nat(farthest),
  aborted: fc.option(fc.array(fc.record({ producerId: fc.nat(farthest), firstOffset: fc.nat(farthest) }), { maxLength: 2 })),
  batches: fc.array(batch, { maxLength: 3 }),
  cutBytes: fc.nat(120),
});
const answer = fc.array(fc.record({ topic: name, partitions: fc.array(partition, { maxLength: 3 }) }), { maxLength: 2 });
type Topics = typeof answer extends fc.Arbitrary<infer T> ? T : never;

/** With the offsets that compaction has left. */
async function encodeBatch({ records, gaps, flags, ...header }: Batch): Promise<Buffer> {
  let offsetDelta = -1;
  const encoded = records.map((one, index) => {
    offsetDelta += 1 + (gaps[index] ?? 0);
    return kafkajsRecord({ ...one, offsetDelta });
  });
  const { buffer } = await RecordBatch({ ...header, records: encoded, lastOffsetDelta: offsetDelta });
  buffer.writeInt16BE(
    flags.reduce((all, flag) => all | flag, 0),
    attributesAt,
  );
  return buffer;
}

const int16 = (value: number) => Buffer.from([(value >> 8) & 255, value & 255]);
function int32(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(value);
  return buffer;
}
function int64(value: number): Buffer {
  const buffer = Buffer.alloc(8);
  buffer.writeBigInt64BE(BigInt(value));
  return buffer;
}

async function encodePartition(part: Topics[number]["partitions"][number]): Promise<Buffer> {
  const whole = Buffer.concat(await Promise.all(part.batches.map(encodeBatch)));
  const left = whole.length - part.cutBytes;
  // Of less kafkajs cannot tell the format, and throws.
  const records = whole.subarray(0, left > formatAt ? left : 0);
  const aborted = part.aborted?.map(({ producerId, firstOffset }) => Buffer.concat([int64(producerId), int64(firstOffset)]));
  return Buffer.concat([
    int32(part.partition),
    int16(part.errorCode),
    int64(part.highWatermark),
    int64(part.highWatermark),
    int64(0),
    int32(aborted?.length ?? -1),
    ...(aborted ?? []),
    int32(-1),
    int32(records.length),
    records,
  ]);
}

async function encodeAnswer(topics: Topics): Promise<Buffer> {
  const parts = topics.map(async ({ topic, partitions }) => {
    const encoded = await Promise.all(partitions.map(encodePartition));
    const text = Buffer.from(topic);
    return Buffer.concat([int16(text.length), text, int32(encoded.length), ...encoded]);
  });
  return Buffer.concat([int32(12), int16(0), int32(7), int32(topics.length), ...(await Promise.all(parts))]);
}

const onePartition = (records: Buffer) =>
  Buffer.concat([
    int32(0),
    int16(0),
    int32(0),
    int32(1),
    int16(1),
    Buffer.from("t"),
    int32(1),
    int32(3),
    int16(0),
    int64(9),
    int64(9),
    int64(0),
    int32(0),
    int32(-1),
    int32(records.length),
    records,
  ]);

const aBatch: Batch = {
  firstOffset: 2 ** 33,
  firstTimestamp: 1_795_000_000_000,
  maxTimestamp: 1_795_000_000_009,
  flags: [],
  gaps: [],
  records: ["a", "b"].map((value) => ({ key: Buffer.from("7"), value: Buffer.from(value), headers: {}, timestampDelta: 1 })),
};

it("reads what kafkajs reads: gaps, times of either kind, headers, nulls, markers, and a last batch that is cut", async () => {
  await fc.assert(
    fc.asyncProperty(answer, async (topics) => {
      const payload = await encodeAnswer(topics);
      expect(decodeFetchAnswer(payload)).toEqual(await kafkajs.decode(payload));
    }),
  );
});

it("reads what our producer writes", async () => {
  const headers = { ce_id: "1", ce_type: "x" };
  const records = ["a", "b"].map((value) => encodeRecord({ topic: "t", key: "7", value: Buffer.from(value), headers }));
  const written = Buffer.alloc(1_000);
  const payload = onePartition(written.subarray(0, writeBatch(written, 0, { records, timestampMs: 1_795_000_000_000 })));
  expect(decodeFetchAnswer(payload)).toEqual(await kafkajs.decode(payload));
});

it("gives records that follow each other under one key the same bytes of it", async () => {
  const payload = onePartition(await encodeBatch(aBatch));
  const [first, second] = decodeFetchAnswer(payload)?.responses[0]?.partitions[0]?.messages ?? [];
  expect(first?.key?.toString()).toBe("7");
  expect(second?.key).toBe(first?.key);
});

it("keeps a header whose name means something to JavaScript", async () => {
  const [record] = aBatch.records as [Batch["records"][number]];
  const headers = Object.fromEntries([["toString", Buffer.from("x")]]);
  const payload = onePartition(await encodeBatch({ ...aBatch, records: [{ ...record, headers }] }));
  expect(decodeFetchAnswer(payload)?.responses[0]?.partitions[0]?.messages[0]?.headers).toEqual(headers);
});

it.each([
  ["a compressed batch", (batch: Buffer) => batch.writeInt16BE(attributes.compressed, attributesAt)],
  ["a batch of an older format", (batch: Buffer) => batch.writeInt8(1, 16)],
  ["a record that is longer than its batch", (batch: Buffer) => batch.fill(0xfe, 61, 65)],
  ["an offset that no number can be", (batch: Buffer) => batch.writeBigInt64BE(2n ** 60n, 0)],
])("leaves %s to kafkajs", async (_what, change) => {
  const encoded = await encodeBatch(aBatch);
  expect(decodeFetchAnswer(onePartition(encoded))).toBeDefined();
  change(encoded);
  expect(decodeFetchAnswer(onePartition(encoded))).toBeUndefined();
});

it("leaves an answer that ends too early to kafkajs", async () => {
  const payload = onePartition(await encodeBatch(aBatch));
  for (const length of [0, 9, 20, payload.length - 1]) expect(decodeFetchAnswer(payload.subarray(0, length))).toBeUndefined();
});
