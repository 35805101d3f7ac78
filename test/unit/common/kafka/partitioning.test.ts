import fc from "fast-check";
import { Partitioners } from "kafkajs";
import { describe, expect, it } from "vitest";
import { partitionOf } from "../../../../services/common/kafka/partitioning.ts";

const kafkajs = Partitioners.DefaultPartitioner();

function chosenByKafkajs(key: string, partitionCount: number): number {
  const partition = { partitionErrorCode: 0, leader: 1, replicas: [1], isr: [1] };
  const partitionMetadata = Array.from({ length: partitionCount }, (_, partitionId) => ({ ...partition, partitionId }));
  return kafkajs({ topic: "any", partitionMetadata, message: { key, value: "" } });
}

describe("partitionOf", () => {
  // The hashes are those of the Java client's own test of its murmur2.
  it.each([
    ["21", -973_932_308],
    ["foobar", -790_332_482],
    ["a-little-bit-long-string", -985_981_536],
    ["a-little-bit-longer-string", -1_486_304_829],
    ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971],
    ["abc", 479_470_107],
  ])("puts %j where the Java client puts it", (key, javaHash) => {
    const positive = javaHash & 0x7fffffff;
    for (const partitionCount of [1, 3, 6, 12, 100]) expect(partitionOf(key, partitionCount)).toBe(positive % partitionCount);
  });

  it("chooses as kafkajs does, for any key", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.integer({ min: 1, max: 200 }), (key, partitionCount) => {
        expect(partitionOf(key, partitionCount)).toBe(chosenByKafkajs(key, partitionCount));
      }),
    );
  });
});
