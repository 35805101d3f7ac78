import type { TopicPartition } from "../../../services/common/kafka/contracts.ts";

export interface LogRecord extends TopicPartition {
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer>>;
  /** Append time on the broker's clock, whole milliseconds. */
  readonly timestampMs: number;
  /** Virtual time, with its fractions: for the ledger alone. */
  readonly atMs: number;
}

export type NewRecord = Pick<LogRecord, "key" | "value" | "headers">;

/** Partitions of records, and how far each group has committed. What Kafka keeps. */
export class Log {
  readonly #topics = new Map<string, LogRecord[][]>();
  readonly #listeners: ((records: readonly LogRecord[]) => void)[] = [];
  /** What becomes of a record on its way into a topic. */
  damage: (topic: string, record: NewRecord) => NewRecord = (_topic, record) => record;
  readonly #clock: () => { readonly atMs: number; readonly brokerMs: number };

  /** `partitionCounts` by topic; `clock`: virtual time and what the broker's clock shows. */
  constructor(partitionCounts: ReadonlyMap<string, number>, clock: () => { readonly atMs: number; readonly brokerMs: number }) {
    this.#clock = clock;
    for (const [topic, count] of partitionCounts) {
      const partitions: LogRecord[][] = Array.from({ length: count }, () => []);
      this.#topics.set(topic, partitions);
    }
  }

  onAppend(listener: (records: readonly LogRecord[]) => void): void {
    this.#listeners.push(listener);
  }

  /** Returns the first offset and the append time. */
  append({ topic, partition }: TopicPartition, records: readonly NewRecord[]): { baseOffset: number; timestampMs: number } {
    const stored = this.records({ topic, partition });
    const baseOffset = stored.length;
    const { atMs, brokerMs } = this.#clock();
    const timestampMs = Math.floor(brokerMs);
    const appended = records
      .map((record) => this.damage(topic, record))
      .map(({ key, value, headers }, index) => ({
        topic,
        partition,
        offset: baseOffset + index,
        key,
        value,
        headers,
        timestampMs,
        atMs,
      }));
    stored.push(...appended);
    for (const listener of this.#listeners) listener(appended);
    return { baseOffset, timestampMs };
  }

  records({ topic, partition }: TopicPartition): LogRecord[] {
    const records = this.#topics.get(topic)?.[partition];
    if (records === undefined) throw new Error(`the log has no partition ${partition} of ${topic}`);
    return records;
  }

  partitionCount(topic: string): number {
    return this.#topics.get(topic)?.length ?? 0;
  }

  /** All records of a topic, partition by partition. */
  all(topic: string): LogRecord[] {
    return (this.#topics.get(topic) ?? []).flat();
  }

  end(partition: TopicPartition): number {
    return this.records(partition).length;
  }
}
