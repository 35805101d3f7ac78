import { createRequire } from "node:module";
import { expect, it, vi } from "vitest";
import { patchFetch } from "../../../../../services/common/kafka/consume/fetch-patch.ts";

interface Asked {
  readonly minBytes: number;
  readonly maxWaitTime: number;
}

const { prototype } = createRequire(import.meta.url)("kafkajs/src/broker/index.js") as {
  prototype: { fetch(request: object): Promise<object> };
};

/** What a broker has for the next fetches, and how it is asked for them. */
const answers: object[] = [];
const asked: Asked[] = [];
prototype.fetch = async (request) => {
  asked.push(request as Asked);
  return answers.shift() ?? answerOf();
};
patchFetch();

/** The last records' offset is `count - 1` in each partition. */
function answerOf(...counts: { readonly count: number; readonly end: number }[]): object {
  const partitions = counts.map(({ count, end }) => ({
    highWatermark: String(end),
    messages: Array.from({ length: count }, (_, offset) => ({ offset: String(offset) })),
  }));
  return { responses: [{ partitions }] };
}

/** Fetches of one consumer whose handler takes 500 ms of the last answer; how the broker was asked. */
async function fetches(minBytes: number, ...given: object[]): Promise<Asked[]> {
  asked.length = 0;
  answers.push(...given);
  const broker = Object.create(prototype) as typeof prototype;
  const clock = vi.spyOn(performance, "now").mockReturnValue(1_000);
  for (const _ of given) await broker.fetch({ minBytes, maxWaitTime: 250, maxBytes: 4_096 });
  clock.mockReturnValue(1_500);
  await broker.fetch({ minBytes, maxWaitTime: 250, maxBytes: 4_096 });
  clock.mockRestore();
  return [...asked];
}

it("asks for the first byte while a consumer that gathers is idle", async () => {
  const [first, second] = await fetches(1_000, answerOf({ count: 1, end: 1 }));
  expect(first).toMatchObject({ minBytes: 1, maxWaitTime: 250 });
  expect(second).toMatchObject({ minBytes: 1, maxWaitTime: 250 });
});

it("lets the broker gather while it is busy, for a share of each partition that had records", async () => {
  const [, second] = await fetches(1_000, answerOf({ count: 40, end: 40 }, { count: 0, end: 9 }, { count: 40, end: 40 }));
  expect(second).toMatchObject({ minBytes: 2_000, maxWaitTime: 50 });
});

it("does not wait where a partition holds more than an answer", async () => {
  const [, second] = await fetches(1_000, answerOf({ count: 64, end: 65 }));
  expect(second).toMatchObject({ minBytes: 1, maxWaitTime: 250 });
});

it("leaves all other consumers as they are", async () => {
  const [, second] = await fetches(1, answerOf({ count: 64, end: 64 }));
  expect(second).toMatchObject({ minBytes: 1, maxWaitTime: 250 });
});
