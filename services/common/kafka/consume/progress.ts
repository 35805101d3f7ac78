import type { TopicPartition } from "../contracts.ts";
import { PartitionMap } from "./partition-map.ts";

interface Standing {
  readonly mark: number;
  readonly sinceMs: number;
}

/** How long partitions with work to do have stood still. Times are monotonic. */
export class Progress {
  readonly #limitMsOf: (partition: TopicPartition) => number;
  readonly #standings = new PartitionMap<Standing>();

  constructor(limitMsOf: (partition: TopicPartition) => number) {
    this.#limitMsOf = limitMsOf;
  }

  /** `mark`: how far it has come; undefined when there is nothing to do. */
  note(partition: TopicPartition, mark: number | undefined, nowMs: number): void {
    if (mark === undefined) this.#standings.delete(partition);
    else if (this.#standings.get(partition)?.mark !== mark) this.#standings.set(partition, { mark, sinceMs: nowMs });
  }

  forget(): void {
    this.#standings.clear();
  }

  /** undefined: everything moves; else the first partition that has stood still for longer than its limit. */
  health(nowMs: number): string | undefined {
    for (const [partition, { sinceMs }] of this.#standings) {
      if (nowMs - sinceMs <= this.#limitMsOf(partition)) continue;
      return `${partition.topic} partition ${partition.partition} has stood still for ${Math.round((nowMs - sinceMs) / 1000)} s`;
    }
    return undefined;
  }
}
