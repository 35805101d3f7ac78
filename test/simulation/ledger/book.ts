import type { Topics } from "../../../services/common/kafka/topics.ts";
import type { Tables } from "../cassandra/tables.ts";
import type { LoggedCall } from "../metadata-hosts.ts";
import type { ServiceName } from "../process.ts";
import type { WorldPlan } from "../world-plan.ts";
import type { LogIndex } from "./log-index.ts";

/** A world that has come to rest, as the ledger knows it. */
export interface Book {
  readonly plan: WorldPlan;
  readonly topics: Topics;
  readonly tables: Tables;
  readonly index: LogIndex;
  readonly calls: readonly LoggedCall[];
  /** How often something happened to a service that may make it repeat a window of work. */
  readonly disturbances: ReadonlyMap<ServiceName, number>;
}
