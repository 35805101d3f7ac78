import { openClient } from "../../services/common/cassandra/client.ts";
import { migrate } from "../../services/common/cassandra/migrate.ts";
import { loadMigrations } from "../../services/common/cassandra/migrations.ts";
import type { Logger } from "../../services/common/logging/logger.ts";
import type { Change } from "./report.ts";
import type { ProvisionSettings } from "./settings.ts";

const folder = new URL("../../schemas/cassandra/", import.meta.url).pathname;
const wantedReplicas = 3;

/** Creates the keyspace and applies the numbered files of schemas/cassandra, each once. */
export async function provisionTables(
  settings: ProvisionSettings,
  { logger, dryRun }: { logger: Logger; dryRun: boolean },
): Promise<Change[]> {
  const cluster = {
    contactPoints: settings.CASSANDRA_CONTACT_POINTS,
    datacenter: settings.CASSANDRA_DATACENTER,
    keyspace: settings.CASSANDRA_KEYSPACE,
    logger,
  };
  const before = await look(cluster);
  const replicationFactor = settings.CASSANDRA_REPLICATION_FACTOR || Math.min(before.nodes, wantedReplicas);
  if (!dryRun) await migrate({ ...cluster, replicationFactor, folder });
  const files = await loadMigrations(folder);
  return files.map(({ number, fileName }) => ({
    kind: "table file",
    name: `${settings.CASSANDRA_KEYSPACE} ${fileName}`,
    action: before.applied.has(number) ? "unchanged" : "created",
    notes: before.applied.size === 0 ? [`replication ${replicationFactor} for a new keyspace`] : [],
  }));
}

interface Before {
  readonly nodes: number;
  /** Numbers of the files that are applied already. */
  readonly applied: ReadonlySet<number>;
}

async function look(cluster: Parameters<typeof openClient>[0] & { keyspace: string }): Promise<Before> {
  const client = await openClient(cluster);
  try {
    const nodes = client.hosts.values().filter(({ datacenter }) => datacenter === cluster.datacenter).length;
    return { nodes, applied: await appliedIn(client, cluster.keyspace) };
  } finally {
    await client.shutdown();
  }
}

async function appliedIn(client: Awaited<ReturnType<typeof openClient>>, keyspace: string): Promise<Set<number>> {
  const table = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ? AND table_name = 'schema_migrations'";
  const found = await client.execute(table, [keyspace]);
  if (found.rowLength === 0) return new Set();
  const applied = await client.execute(`SELECT number FROM ${keyspace}.schema_migrations`);
  return new Set(applied.rows.map((row) => Number(row.number)));
}
