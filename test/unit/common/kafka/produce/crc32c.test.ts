import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, it } from "vitest";
import { crc32c } from "../../../../../services/common/kafka/produce/crc32c.ts";

const require = createRequire(import.meta.url);
const ofKafkajs = require("kafkajs/src/protocol/recordBatch/crc32C/index.js") as (bytes: Buffer) => number;

// RFC 3720, appendix B.4.
it.each([
  ["32 zeros", Buffer.alloc(32), 0x8a9136aa],
  ["32 times 0xff", Buffer.alloc(32, 0xff), 0x62a8ab43],
  ["0 to 31", Buffer.from(Array.from({ length: 32 }, (_, index) => index)), 0x46dd794e],
  ["31 to 0", Buffer.from(Array.from({ length: 32 }, (_, index) => 31 - index)), 0x113fdb5c],
])("of %s is that of the standard", (_name, bytes, sum) => {
  expect(crc32c(bytes, 0, bytes.length)).toBe(sum);
});

it("of any stretch of any bytes is that of kafkajs", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(40), (content, start) => {
      const bytes = Buffer.from(content);
      const from = Math.min(start, bytes.length);
      expect(crc32c(bytes, from, bytes.length)).toBe(ofKafkajs(bytes.subarray(from)));
    }),
  );
});
