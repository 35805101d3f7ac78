import type { Kafka } from "kafkajs";
import type { Cassandra } from "../../services/common/cassandra/session.ts";
import type { Topics } from "../../services/common/kafka/topics.ts";
import type { Call, MetadataApi } from "../../services/fetcher/adapters/metadata-api.ts";
import type { CallResult } from "../../services/fetcher/core/results.ts";

/** What the replaced modules of services (module-replacement.ts) find instead of servers. */
export interface Surroundings {
  readonly topics: Topics;
  kafka(requestTimeoutMs: number): Kafka;
  cassandra(): Cassandra;
  call(call: Call): Promise<CallResult>;
  /** A bug switched on: takes what a service makes and gives it back spoilt. */
  readonly spoil: Readonly<Record<string, (made: never) => unknown>>;
}

let entered: Surroundings | undefined;

export function enterSurroundings(surroundings: Surroundings): void {
  entered = surroundings;
}

export function surroundings(): Surroundings {
  if (entered === undefined) throw new Error("a service was started outside of a simulated world");
  return entered;
}

/** The calls of one process. */
export function simulatedMetadataApi(): MetadataApi {
  let underWay = 0;
  return {
    async call(call) {
      underWay += 1;
      try {
        return await surroundings().call(call);
      } finally {
        underWay -= 1;
      }
    },
    get underWay() {
      return underWay;
    },
    idleConnections: 0,
    heldBytes: 0,
    close() {},
  };
}
