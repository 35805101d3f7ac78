import { setTimeout as delay } from "node:timers/promises";
import type { Admin, Kafka } from "kafkajs";
import { messageOf } from "../../errors.ts";
import type { Logger } from "../../logging/logger.ts";
import type { TopicPartition } from "../contracts.ts";
import { PartitionMap } from "./partition-map.ts";

/** Where a partition's log begins and ends, and how far a group has come. `end` is the offset after the last record. */
export interface PartitionOffsets {
  /** undefined: nothing is committed. */
  readonly committed: number | undefined;
  readonly beginning: number;
  readonly end: number;
}

/**
 * Asks the brokers, over connections of its own that are closed again: the question is rare, and an idle connection is one more
 * thing that breaks. Rejects when one partition is not known.
 */
export async function lookUpOffsets(
  kafka: Kafka,
  groupId: string,
  partitions: readonly TopicPartition[],
): Promise<PartitionMap<PartitionOffsets>> {
  const found = new PartitionMap<PartitionOffsets>();
  if (partitions.length === 0) return found;
  const admin = kafka.admin();
  try {
    await admin.connect();
    const topics = [...new Set(partitions.map(({ topic }) => topic))];
    const committed = await committedOffsets(admin, groupId, topics);
    for (const topic of topics) {
      for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
        const offsets = { committed: committed.get({ topic, partition }), beginning: Number(low), end: Number(high) };
        found.set({ topic, partition }, offsets);
      }
    }
  } finally {
    await admin.disconnect();
  }
  const unknown = partitions.find((partition) => !found.has(partition));
  if (unknown !== undefined) throw new Error(`partition ${unknown.partition} of ${unknown.topic} does not exist`);
  return found;
}

/** Asks until it gets an answer; undefined when the signal aborts first. */
export async function keepLookingUp(
  look: () => Promise<PartitionMap<PartitionOffsets>>,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<PartitionMap<PartitionOffsets> | undefined> {
  for (let waitMs = 100; !signal.aborted; waitMs = Math.min(2 * waitMs, 5_000)) {
    try {
      return await look();
    } catch (error) {
      logger.warn({ cause: messageOf(error) }, "consumer.offsets_unknown");
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

async function committedOffsets(admin: Admin, groupId: string, topics: string[]): Promise<PartitionMap<number>> {
  const committed = new PartitionMap<number>();
  for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics })) {
    // Negative: nothing committed, or kafkajs' mark for the beginning.
    for (const { partition, offset } of partitions) {
      if (Number(offset) >= 0) committed.set({ topic, partition }, Number(offset));
    }
  }
  return committed;
}

/** Where to read on. `expired`: retention took records before they were read. `beyond_end`: the log is another one than before. */
export interface StartOffset {
  readonly offset: number;
  readonly reset?: "expired" | "beyond_end";
}

/** Nothing committed: from the beginning. An offset outside the log: from the beginning too, and said aloud. */
export function chooseStart(known: PartitionOffsets, ownPosition?: number): StartOffset {
  const wanted = Math.max(known.committed ?? -1, ownPosition ?? -1);
  if (wanted < 0) return { offset: known.beginning };
  if (wanted > known.end) return { offset: known.beginning, reset: "beyond_end" };
  if (wanted < known.beginning) return { offset: known.beginning, reset: "expired" };
  return { offset: wanted };
}
