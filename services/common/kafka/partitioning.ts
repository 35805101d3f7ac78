import { Partitioners } from "kafkajs";
import { LRUCache } from "lru-cache";

const choose = Partitioners.DefaultPartitioner();

/** Hashing a key costs about 4 µs in kafkajs, and most records follow one with the same key. */
const rememberedKeys = 4_096;
const chosen = new Map<number, LRUCache<string, number>>();

/**
 * The partition of a key: Kafka's murmur2 over its UTF-8 bytes, the same as in every Kafka client with the default partitioner.
 * `partitionCount` is the topic's count in deploy/topics.yaml.
 */
export function partitionOf(key: string, partitionCount: number): number {
  const remembered = cacheFor(partitionCount);
  const known = remembered.get(key);
  if (known !== undefined) return known;
  const partition = choose({ topic: "", partitionMetadata: partitions(partitionCount), message: { key, value: null } });
  remembered.set(key, partition);
  return partition;
}

function cacheFor(partitionCount: number): LRUCache<string, number> {
  const existing = chosen.get(partitionCount);
  if (existing !== undefined) return existing;
  const created = new LRUCache<string, number>({ max: rememberedKeys });
  chosen.set(partitionCount, created);
  return created;
}

/** kafkajs takes the count from the length; a record with a key looks at nothing else. */
function partitions(count: number) {
  return Array.from({ length: count }, (_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: 0,
    replicas: [],
    isr: [],
  }));
}
