import type { TopicPartition } from "../contracts.ts";

type Entry<V> = readonly [TopicPartition, V];

/** A map by topic and partition, in order of insertion. Asked several times for each record: no text is made of a place. */
export class PartitionMap<V> implements Iterable<Entry<V>> {
  readonly #byTopic = new Map<string, Map<number, { entry: Entry<V> }>>();
  readonly #inOrder = new Set<{ readonly entry: Entry<V> }>();

  get size(): number {
    return this.#inOrder.size;
  }

  has(partition: TopicPartition): boolean {
    return this.#slot(partition) !== undefined;
  }

  get(partition: TopicPartition): V | undefined {
    return this.#slot(partition)?.entry[1];
  }

  set({ topic, partition }: TopicPartition, value: V): void {
    const entry: Entry<V> = [{ topic, partition }, value];
    const known = this.#slot({ topic, partition });
    if (known !== undefined) {
      known.entry = entry;
      return;
    }
    const slot = { entry };
    this.#inOrder.add(slot);
    const ofTopic = this.#byTopic.get(topic) ?? new Map<number, { entry: Entry<V> }>();
    this.#byTopic.set(topic, ofTopic.set(partition, slot));
  }

  delete(partition: TopicPartition): boolean {
    const slot = this.#slot(partition);
    if (slot === undefined) return false;
    this.#byTopic.get(partition.topic)?.delete(partition.partition);
    return this.#inOrder.delete(slot);
  }

  clear(): void {
    this.#byTopic.clear();
    this.#inOrder.clear();
  }

  get partitions(): readonly TopicPartition[] {
    return Array.from(this, ([partition]) => partition);
  }

  *[Symbol.iterator](): Iterator<Entry<V>> {
    for (const { entry } of this.#inOrder) yield entry;
  }

  #slot({ topic, partition }: TopicPartition): { entry: Entry<V> } | undefined {
    return this.#byTopic.get(topic)?.get(partition);
  }
}

/** `topic: 0,3,7` for a log line. */
export function describePartitions(partitions: readonly TopicPartition[]): Record<string, string> {
  const byTopic = Map.groupBy(partitions, ({ topic }) => topic);
  return Object.fromEntries([...byTopic].map(([topic, list]) => [topic, list.map(({ partition }) => partition).join()]));
}
