import type { TopicPartition } from "../contracts.ts";

/** A map by topic and partition, in order of insertion. */
export class PartitionMap<V> implements Iterable<readonly [TopicPartition, V]> {
  readonly #entries = new Map<string, readonly [TopicPartition, V]>();

  get size(): number {
    return this.#entries.size;
  }

  has(partition: TopicPartition): boolean {
    return this.#entries.has(keyOf(partition));
  }

  get(partition: TopicPartition): V | undefined {
    return this.#entries.get(keyOf(partition))?.[1];
  }

  set(partition: TopicPartition, value: V): void {
    this.#entries.set(keyOf(partition), [{ topic: partition.topic, partition: partition.partition }, value]);
  }

  delete(partition: TopicPartition): boolean {
    return this.#entries.delete(keyOf(partition));
  }

  clear(): void {
    this.#entries.clear();
  }

  get partitions(): readonly TopicPartition[] {
    return [...this.#entries.values()].map(([partition]) => partition);
  }

  [Symbol.iterator](): Iterator<readonly [TopicPartition, V]> {
    return this.#entries.values();
  }
}

// The partition first: a topic's name may end in anything.
const keyOf = ({ topic, partition }: TopicPartition): string => `${partition}/${topic}`;

/** `topic: 0,3,7` for a log line. */
export function describePartitions(partitions: readonly TopicPartition[]): Record<string, string> {
  const byTopic = Map.groupBy(partitions, ({ topic }) => topic);
  return Object.fromEntries([...byTopic].map(([topic, list]) => [topic, list.map(({ partition }) => partition).join()]));
}
