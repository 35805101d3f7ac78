import type { Cassandra } from "../../common/cassandra/session.ts";
import type { ReadDone } from "../core/ports.ts";

export function createReadDone(cassandra: Pick<Cassandra, "read">): ReadDone {
  return async (refreshId) => {
    const [row] = await cassandra.read("SELECT done FROM refresh_progress WHERE refresh_id = ?", [refreshId]);
    return row?.done instanceof Uint8Array ? row.done : undefined;
  };
}
