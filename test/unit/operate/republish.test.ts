import { expect, it } from "vitest";
import { pauseMs } from "../../../deploy/operate/token-state/pace.ts";
import { type RepublishProgress, republish } from "../../../deploy/operate/token-state/republish.ts";
import type { TokenBucket } from "../../../deploy/operate/token-state/scan.ts";
import { AbandonedError } from "../../../services/common/errors.ts";
import type { OutgoingRecord, RecordProducer } from "../../../services/common/kafka/contracts.ts";
import { loadTopics } from "../../../services/common/kafka/topics.ts";

const topic = loadTopics().tokenOutcome;
const collection = "0x00000000000000000000000000000000000c0113";

function bucketsOf(...sizes: readonly number[]): TokenBucket[] {
  return sizes.map((size, index) => ({
    position: BigInt(index),
    collection,
    tokenIds: Array.from({ length: size }, (_, token) => `${index}-${token}`),
  }));
}

/** A run into a producer that answers at once, or as `deliver` says. */
function setUp(ratePerSecond: number, deliver: (sent: number) => void = () => undefined) {
  const sent: { records: readonly OutgoingRecord[]; atMs: number }[] = [];
  const progress: RepublishProgress[] = [];
  /** The first time that the run asked for. */
  const clock = { startedMs: Number.NaN };
  const controller = new AbortController();
  const producer = {
    deliver: async (records: readonly OutgoingRecord[], { signal }: { signal: AbortSignal }) => {
      if (signal.aborted) throw new AbandonedError("as the producer does");
      sent.push({ records, atMs: performance.now() });
      deliver(sent.length);
      return [];
    },
  } as unknown as RecordProducer;
  const codec = { encode: (_topic: string, value: unknown) => Buffer.from(JSON.stringify(value)), decode: () => never() };
  const run = (buckets: readonly TokenBucket[]) =>
    republish(buckets, {
      producer,
      codec,
      topic,
      ratePerSecond,
      monotonicMs: () => {
        const nowMs = performance.now();
        if (Number.isNaN(clock.startedMs)) clock.startedMs = nowMs;
        return nowMs;
      },
      signal: controller.signal,
      onProgress: (step) => progress.push(step),
    });
  return { run, sent, progress, clock, abort: () => controller.abort() };
}

function never(): never {
  throw new Error("nothing is decoded here");
}

it.each([
  ["nothing was sent", 0, 0, 100, 0],
  ["it is just on time", 100, 1_000, 100, 0],
  ["it is late", 50, 1_000, 100, 0],
  ["it is early", 150, 1_000, 100, 500],
  ["a part of a millisecond is missing", 1, 0, 3, 334],
])("waits as long as the rate asks for where %s", (_what, sentCount, elapsedMs, rate, wait) => {
  expect(pauseMs(sentCount, elapsedMs, rate)).toBe(wait);
});

it("never sends more than its rate, in bursts of at most a hundred, a bucket larger than the rate included", async () => {
  const { run, sent, clock } = setUp(200);
  expect(await run(bucketsOf(256, 3))).toMatchObject({ sentCount: 259, complete: true });
  expect(sent.map(({ records }) => records.length)).toEqual([100, 100, 56, 3]);
  for (const [index, { atMs }] of sent.entries()) {
    const before = sent.slice(0, index).reduce((sum, { records }) => sum + records.length, 0);
    // A timer may fire within a millisecond of its time.
    expect(atMs - clock.startedMs).toBeGreaterThanOrEqual((before * 1_000) / 200 - 2);
  }
});

it("names only the token in an order, keyed by its collection", async () => {
  const { run, sent } = setUp(1_000);
  await run(bucketsOf(1));
  const [order] = sent[0]?.records ?? [];
  expect(order).toMatchObject({ topic: topic.name, key: collection });
  const { collection_address, token_id, republish: marked, ...rest } = JSON.parse(String(order?.value));
  expect({ collection_address, token_id, marked }).toEqual({ collection_address: collection, token_id: "0-0", marked: true });
  expect(Object.values(rest).filter((value) => value !== null && value !== 0 && value !== "")).toEqual([[]]);
});

it("gives a position only when its whole bucket is acknowledged, also of buckets without content", async () => {
  const { run, progress, abort } = setUp(100_000, (calls) => {
    if (calls === 3) abort();
  });
  const end = await run(bucketsOf(2, 0, 256, 5));
  // The abort came in the second hundred of bucket 2: that hundred is sent, the bucket is not done.
  expect(progress.map(({ position }) => position)).toEqual([0n, 1n]);
  expect(end).toEqual({ sentCount: 202, position: 1n, complete: false });
});
