import type { TopicPartition } from "../contracts.ts";
import type { GroupConsumer } from "./group-consumer.ts";
import { PartitionMap } from "./partition-map.ts";

/** Partitions that are not fetched for a while, and then again; the others go on meanwhile. */
export class Holds {
  readonly #member: Pick<GroupConsumer, "pause" | "resume">;
  readonly #timers = new PartitionMap<NodeJS.Timeout>();

  constructor(member: Pick<GroupConsumer, "pause" | "resume">) {
    this.#member = member;
  }

  hold(partition: TopicPartition, ms: number): void {
    clearTimeout(this.#timers.get(partition));
    this.#member.pause(partition, "backoff");
    this.#timers.set(
      partition,
      setTimeout(() => this.#release(partition), Math.max(1, ms)),
    );
  }

  /** Everything is fetched again: after a rebalance, a reason to wait may be gone. */
  clear(): void {
    for (const [partition] of [...this.#timers]) this.#release(partition);
  }

  #release(partition: TopicPartition): void {
    clearTimeout(this.#timers.get(partition));
    this.#timers.delete(partition);
    this.#member.resume(partition, "backoff");
  }
}
