import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { patchEmptyBatches } from "../../../../../services/common/kafka/consume/empty-batch-patch.ts";

const { prototype } = createRequire(import.meta.url)("kafkajs/src/consumer/consumerGroup.js") as {
  prototype: { fetch(nodeId: string): Promise<object[]> };
};

it("hands on what brought records, and what the log had filtered out, whose position has to move", async () => {
  const empty = { rawMessages: [], messages: [] };
  const filtered = { rawMessages: ["marker"], messages: [] };
  const full = { rawMessages: ["record"], messages: ["record"] };
  prototype.fetch = async () => [empty, filtered, empty, full];
  patchEmptyBatches();
  expect(await prototype.fetch("1")).toEqual([filtered, full]);
});
