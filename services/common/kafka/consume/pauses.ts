import type { TopicPartition } from "../contracts.ts";
import { PartitionMap } from "./partition-map.ts";

/** Why a partition is not fetched. */
export type PauseReason =
  /** Its position is being looked up. */
  | "positioning"
  /** Tried again later. */
  | "backoff"
  /** Its fetched records are not due yet. */
  | "held"
  /** The window of the process is full. */
  | "budget"
  | "caller"
  | "stopping";

/** A partition is fetched when nobody has a reason against it: one's resume never undoes another's pause. */
export class Pauses {
  readonly #reasons = new PartitionMap<Set<PauseReason>>();

  /** Whether this was the first reason. */
  add(partition: TopicPartition, reason: PauseReason): boolean {
    const reasons = this.#reasons.get(partition);
    if (reasons === undefined) this.#reasons.set(partition, new Set([reason]));
    else reasons.add(reason);
    return reasons === undefined;
  }

  /** Whether this was the last reason. */
  remove(partition: TopicPartition, reason: PauseReason): boolean {
    const reasons = this.#reasons.get(partition);
    if (reasons === undefined || !reasons.delete(reason) || reasons.size > 0) return false;
    return this.#reasons.delete(partition);
  }

  has(partition: TopicPartition, reason: PauseReason): boolean {
    return this.#reasons.get(partition)?.has(reason) ?? false;
  }

  paused(partition: TopicPartition): boolean {
    return this.#reasons.has(partition);
  }

  forget(partition: TopicPartition): void {
    this.#reasons.delete(partition);
  }
}
