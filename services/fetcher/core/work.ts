import type { TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Route } from "./routes.ts";
import type { Schedulable } from "./scheduler.ts";

export type Position = TopicPartition & { readonly offset: number };

/** One token refresh on its way through this process. They wait by the ten thousand: what follows from the record is not kept twice. */
export class Work implements Schedulable {
  readonly refresh: TokenRefresh;
  readonly route: Route;
  /**
   * Every place in the log that is finished with it: the record's, and those of its duplicates that came meanwhile. None when its
   * partition went to another member: what comes of it has no effect, unless the record comes back first.
   */
  positions: readonly Position[];
  readonly offeredAtMs: number;
  readonly lastAttempt: boolean;

  constructor(refresh: TokenRefresh, about: Pick<Work, "route" | "positions" | "offeredAtMs" | "lastAttempt">) {
    this.refresh = refresh;
    this.route = about.route;
    this.positions = about.positions;
    this.offeredAtMs = about.offeredAtMs;
    this.lastAttempt = about.lastAttempt;
  }

  get queue(): string {
    return this.route.queue;
  }

  get endpoint(): Endpoint {
    return this.route.endpoint;
  }

  get maxConcurrency(): number | null {
    return this.refresh.max_concurrency;
  }

  get maxRequestsPerSecond(): number | null {
    return this.refresh.max_requests_per_second;
  }

  get firstQueuedAt(): number {
    return this.refresh.first_queued_at;
  }
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
