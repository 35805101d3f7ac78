import type { Cassandra } from "../../../services/common/cassandra/session.ts";
import { surroundings } from "../surroundings.ts";

/** Stands for services/common/cassandra/session.ts. */
export async function connectCassandra(): Promise<Cassandra> {
  return surroundings().cassandra();
}
