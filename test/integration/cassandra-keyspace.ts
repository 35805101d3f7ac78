import { randomBytes } from "node:crypto";
import { Client } from "cassandra-driver";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { dropKeyspace } from "../../services/common/cassandra/migrate.ts";
import { createLogger } from "../../services/common/logging/logger.ts";

export interface Scan {
  readonly liveRowCount: number;
  readonly tombstoneCount: number;
}

/** A keyspace of a name that nobody else has, and the driver itself for what a session does not show. */
export interface TestKeyspace {
  readonly cluster: {
    readonly contactPoints: readonly string[];
    readonly datacenter: string;
    readonly keyspace: string;
    readonly logger: ReturnType<typeof createLogger>;
    readonly requestTimeoutMs: number;
  };
  /** The driver, in this keyspace once it exists. */
  raw(): Promise<Client>;
  /** Every cell of a table as text: what a thief of the disk would read. */
  dump(table: string): Promise<string>;
  /** What the server meets when it reads the whole table: from the trace of that read. */
  scan(table: string): Promise<Scan>;
  close(): Promise<void>;
}

export function createKeyspace(name: string): TestKeyspace {
  const environment = stackEnvironment();
  const cluster = {
    contactPoints: [environment.CASSANDRA_CONTACT_POINTS ?? ""],
    datacenter: environment.CASSANDRA_DATACENTER ?? "",
    keyspace: `${name}_${randomBytes(4).toString("hex")}`,
    logger: createLogger(name, "silent"),
    // A loaded server takes long for a change of the schema.
    requestTimeoutMs: 60_000,
  };
  let client: Promise<Client> | undefined;
  const raw = () => {
    client ??= connect(cluster);
    return client;
  };
  return {
    cluster,
    raw,
    dump: async (table) => JSON.stringify((await (await raw()).execute(`SELECT * FROM ${table}`)).rows),
    scan: async (table) => scan(await raw(), table),
    async close() {
      await (await client)?.shutdown();
      await dropKeyspace(cluster);
    },
  };
}

async function connect(cluster: TestKeyspace["cluster"]): Promise<Client> {
  const client = new Client({
    contactPoints: [...cluster.contactPoints],
    localDataCenter: cluster.datacenter,
    keyspace: cluster.keyspace,
  });
  await client.connect();
  return client;
}

async function scan(client: Client, table: string): Promise<Scan> {
  const { info } = await client.execute(`SELECT * FROM ${table}`, [], { traceQuery: true, fetchSize: 100_000 });
  // The driver waits until the server has written the whole trace.
  const { events } = await client.metadata.getTrace(info.traceId);
  const read = events.flatMap(({ activity }) => {
    const [, live, tombstones] = /Read (\d+) live rows and (\d+) tombstone cells/.exec(activity) ?? [];
    return live === undefined ? [] : [{ liveRowCount: Number(live), tombstoneCount: Number(tombstones) }];
  });
  if (read.length === 0) throw new Error(`the trace of ${table} does not say what was read`);
  return {
    liveRowCount: read.reduce((sum, { liveRowCount }) => sum + liveRowCount, 0),
    tombstoneCount: read.reduce((sum, { tombstoneCount }) => sum + tombstoneCount, 0),
  };
}
