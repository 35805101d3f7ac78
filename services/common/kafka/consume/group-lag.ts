import type { Kafka } from "kafkajs";
import type { TopicPartition } from "../contracts.ts";
import { lookUpOffsets } from "./offsets.ts";

export interface GroupLag {
  /** Records behind the group's committed offsets, summed over the partitions. Rejects when Kafka cannot say. */
  lag(groupId: string, partitions: readonly TopicPartition[]): Promise<number>;
  close(): Promise<void>;
}

/** Where nothing is committed, every record counts: the group will start at the beginning. */
export function createGroupLag(kafka: Kafka): GroupLag {
  const open = new Set<Promise<unknown>>();
  return {
    async lag(groupId, partitions) {
      const question = lookUpOffsets(kafka, groupId, partitions);
      open.add(question);
      const offsets = await question.finally(() => open.delete(question));
      return partitions.reduce((sum, partition) => {
        const { committed, beginning, end } = offsets.get(partition) ?? { committed: undefined, beginning: 0, end: 0 };
        return sum + Math.max(0, end - Math.max(committed ?? beginning, beginning));
      }, 0);
    },
    async close() {
      await Promise.allSettled(open);
    },
  };
}
