import type { TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Schedulable } from "./scheduler.ts";

export type Position = TopicPartition & { readonly offset: number };

/** One token refresh on its way through this process. */
export interface Work extends Schedulable {
  readonly identity: string;
  readonly refresh: TokenRefresh;
  readonly endpoint: Endpoint;
  /**
   * Every place in the log that is finished with it: the record's, and those of its duplicates that came meanwhile. None when its
   * partition went to another member: what comes of it has no effect, unless the record comes back first.
   */
  positions: readonly Position[];
  readonly offeredAtMs: number;
}

export function isLost({ positions }: Work): boolean {
  return positions.length === 0;
}

export function isSamePlace(a: Position, b: Position): boolean {
  return a.offset === b.offset && a.partition === b.partition && a.topic === b.topic;
}

/** The partition first: a topic's name may end in anything. */
export function nameOf({ topic, partition }: TopicPartition): string {
  return `${partition}/${topic}`;
}
