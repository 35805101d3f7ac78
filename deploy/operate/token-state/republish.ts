import { setTimeout as delay } from "node:timers/promises";
import { AbandonedError } from "../../../services/common/errors.ts";
import type { Codec, OutgoingRecord, RecordProducer } from "../../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../../services/common/kafka/topics.ts";
import { republishOrder } from "../../../services/common/messages/republish.ts";
import { pauseMs } from "./pace.ts";
import type { TokenBucket } from "./scan.ts";

export interface RepublishParts {
  readonly producer: RecordProducer;
  readonly codec: Codec;
  /** token.outcome. */
  readonly topic: TopicDefinition;
  readonly ratePerSecond: number;
  readonly monotonicMs: () => number;
  /** Aborted: it stops behind the bucket that is under way. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: RepublishProgress) => void;
}

/** `position`: everything before it is acknowledged, and a later run may begin there. undefined: nothing was found. */
export interface RepublishProgress {
  readonly sentCount: number;
  readonly position: bigint | undefined;
}

/** Sent at once: a bucket of 256 tokens is a burst where few a second are wanted. */
const largestBurst = 100;

/** Orders each token to be published again; resolves when every order is acknowledged, or at the abort. */
export async function republish(
  buckets: AsyncIterable<TokenBucket> | Iterable<TokenBucket>,
  parts: RepublishParts,
): Promise<RepublishProgress & { readonly complete: boolean }> {
  let progress: RepublishProgress = { sentCount: 0, position: undefined };
  const burst = Math.min(largestBurst, parts.ratePerSecond);
  let startedMs: number | undefined;
  for await (const bucket of buckets) {
    startedMs ??= parts.monotonicMs();
    if (parts.signal.aborted) return { ...progress, complete: false };
    for (let start = 0; start < bucket.tokenIds.length; start += burst) {
      await pause(pauseMs(progress.sentCount, parts.monotonicMs() - startedMs, parts.ratePerSecond), parts.signal);
      // Within a bucket too: the position before it stays, and what was sent of it is sent again.
      const tokenIds = bucket.tokenIds.slice(start, start + burst);
      if (!(await sendAll(ordersOf({ ...bucket, tokenIds }, parts), parts))) return { ...progress, complete: false };
      progress = { ...progress, sentCount: progress.sentCount + tokenIds.length };
    }
    progress = { ...progress, position: bucket.position };
    parts.onProgress(progress);
  }
  return { ...progress, complete: true };
}

function ordersOf({ collection, tokenIds }: TokenBucket, { topic, codec }: RepublishParts): OutgoingRecord[] {
  return tokenIds.map((tokenId) => ({
    topic: topic.name,
    key: collection,
    value: codec.encode(topic.name, republishOrder(collection, tokenId)),
  }));
}

/** False at the abort: Kafka may be away for long. */
async function sendAll(orders: readonly OutgoingRecord[], { producer, signal }: RepublishParts): Promise<boolean> {
  try {
    await producer.deliver(orders, { signal });
    return true;
  } catch (error) {
    if (error instanceof AbandonedError) return false;
    throw error;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => undefined);
}
