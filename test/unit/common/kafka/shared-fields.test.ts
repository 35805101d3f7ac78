import avsc from "avsc";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { avroType } from "../../../../services/common/kafka/avro.ts";
import { schemaText } from "../../../../services/common/kafka/schema-files.ts";
import { loadTopics } from "../../../../services/common/kafka/topics.ts";
import { tokenRefresh } from "../../fetcher/core/records.ts";

const schema = schemaText(loadTopics().tokenRequested);
const plain = avsc.Type.forSchema(JSON.parse(schema) as avsc.Schema);
const attempt = { at: 1_795_000_000_000_000, status: 503, duration_ms: 20, body_bytes: 0, cause: "service_unavailable" };

/** Few values of each field, so that beginnings repeat, and differ in any one of their fields. */
const records = fc.array(
  fc.record({
    refresh_id: fc.constantFrom("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222", ""),
    total: fc.constantFrom(2, 1_000),
    project_id: fc.constantFrom(7, 2 ** 40),
    deadline: fc.constantFrom(1_795_000_000_000_000, 1),
    metadata_api_url: fc.constantFrom("https://a.example", `https://${"b".repeat(300)}.example`),
    max_concurrency: fc.constantFrom(null, 3),
    ordinal: fc.nat(999),
    attempt: fc.constantFrom(1, 2),
    attempts: fc.constantFrom([], [attempt]),
  }),
  { maxLength: 12 },
);

function isRead(type: avsc.Type, bytes: Buffer): boolean {
  try {
    return (type.decode(bytes, 0) as { offset: number }).offset >= 0;
  } catch {
    return false;
  }
}

describe("a record whose beginning repeats", () => {
  it("has the bytes that avsc gives it, and is read from them, whatever came before it", () => {
    const type = avroType(schema);
    fc.assert(
      fc.property(records, (list) => {
        for (const record of list.map((changes) => tokenRefresh(changes))) {
          const bytes = plain.toBuffer(record);
          expect(type.toBuffer(record).equals(bytes)).toBe(true);
          expect(type.fromBuffer(bytes)).toEqual(record);
        }
      }),
    );
  });

  it("is read when other records follow it in the buffer, or it ends with the buffer", () => {
    const type = avroType(schema);
    const [first, second] = [tokenRefresh({ ordinal: 1 }), tokenRefresh({ ordinal: 2 })];
    const both = Buffer.concat([plain.toBuffer(first), plain.toBuffer(second)]);
    const { value, offset } = type.decode(both, 0) as { value: unknown; offset: number };
    expect(value).toEqual(first);
    expect(type.decode(both, offset)).toEqual({ value: second, offset: both.length });
  });

  it("that is cut off is not read, and spoils nothing that comes later", () => {
    const type = avroType(schema);
    const bytes = plain.toBuffer(tokenRefresh());
    const lengths = Array.from({ length: bytes.length - 1 }, (_, index) => index + 1);
    const read = () => lengths.filter((length) => isRead(type, bytes.subarray(0, length)));
    expect(read()).toEqual([]);
    expect(type.fromBuffer(bytes)).toEqual(tokenRefresh());
    expect(read()).toEqual([]);
  });

  it("that does not fit into a buffer says what is missing, the first time and later", () => {
    const type = avroType(schema);
    const bytes = plain.toBuffer(tokenRefresh());
    for (const _ of [1, 2]) {
      expect(type.encode(tokenRefresh(), Buffer.alloc(20))).toBe(20 - bytes.length);
      expect(type.encode(tokenRefresh(), Buffer.alloc(bytes.length))).toBe(bytes.length);
    }
  });

  it("shares its texts with the record before", () => {
    const type = avroType(schema);
    const url = `https://${"a".repeat(100_000)}.example`;
    const bytes = plain.toBuffer(tokenRefresh({ metadata_api_url: url }));
    type.fromBuffer(bytes);
    const before = process.memoryUsage().heapUsed;
    const many = Array.from({ length: 1_000 }, () => type.fromBuffer(bytes) as { metadata_api_url: string });
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * 1024 ** 2);
    expect(many.every(({ metadata_api_url }) => metadata_api_url === url)).toBe(true);
  });

  it("that is no value of the schema is refused, though its beginning was written before", () => {
    const type = avroType(schema);
    type.toBuffer(tokenRefresh());
    expect(() => type.toBuffer({ ...tokenRefresh(), total: "1" })).toThrow();
    expect(() => type.toBuffer({ ...tokenRefresh(), attempt: "1" })).toThrow();
  });

  it("is forgotten before there are too many, and read again", () => {
    const type = avroType(schema);
    for (let round = 0; round < 2; round++) {
      for (let index = 0; index < 1_100; index++) {
        const record = tokenRefresh({ refresh_id: String(index) });
        expect((type.fromBuffer(type.toBuffer(record)) as { refresh_id: string }).refresh_id).toBe(String(index));
      }
    }
  });
});
