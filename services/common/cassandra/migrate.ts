import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Client, Host } from "cassandra-driver";
import { microsFromMs, systemClock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import { type ClusterOptions, openClient } from "./client.ts";
import { MigrationLock } from "./migration-lock.ts";
import { loadMigrations, type Migration } from "./migrations.ts";

/** A change of the schema waits for the disk of every node: on a loaded cluster far longer than a query may take. */
const schemaTimeoutMs = 60_000;

export interface MigrateOptions extends ClusterOptions {
  readonly keyspace: string;
  /** Replicas in the local data centre, for a keyspace that does not exist yet. */
  readonly replicationFactor: number;
  /** The folder of the numbered files: schemas/cassandra. */
  readonly folder: string;
  /** How long to wait for another migration of the same keyspace. */
  readonly lockTimeoutMs?: number;
}

/**
 * Creates the keyspace and applies each numbered file once, in order. Returns the files applied by this call. Safe to repeat
 * and to run twice at once. Rejects when a file cannot be applied (what stood before it stays applied) and when an applied
 * file's statements have changed. Migrations of a newer release than this one are left alone.
 */
export async function migrate(options: MigrateOptions): Promise<{ applied: string[] }> {
  const migrations = await loadMigrations(options.folder);
  const client = await openClient({ requestTimeoutMs: schemaTimeoutMs, ...options });
  try {
    const schema = new Schema(client, options);
    await schema.ensureKeyspace();
    const pending = await schema.pendingOf(migrations);
    if (pending.length === 0) return { applied: [] };
    return await schema.locked(async (lock) => {
      const applied: string[] = [];
      // Read again: whoever held the lock before may have applied them.
      for (const migration of await schema.pendingOf(migrations)) {
        await schema.apply(migration, lock);
        options.logger.info({ migration: migration.fileName, keyspace: options.keyspace }, "cassandra.migrated");
        applied.push(migration.fileName);
      }
      return { applied };
    });
  } finally {
    await client.shutdown();
  }
}

/** Removes the keyspace with everything in it: for tests. */
export async function dropKeyspace(options: ClusterOptions & { readonly keyspace: string }): Promise<void> {
  const client = await openClient({ requestTimeoutMs: schemaTimeoutMs, ...options });
  try {
    await client.execute(`DROP KEYSPACE IF EXISTS ${options.keyspace}`, [], { prepare: false });
  } finally {
    await client.shutdown();
  }
}

class Schema {
  readonly #client: Client;
  readonly #options: MigrateOptions;

  constructor(client: Client, options: MigrateOptions) {
    this.#client = client;
    this.#options = options;
  }

  async ensureKeyspace(): Promise<void> {
    const { keyspace, datacenter, replicationFactor } = this.#options;
    const replication = `{'class': 'NetworkTopologyStrategy', '${datacenter}': ${replicationFactor}}`;
    await this.#define(`CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = ${replication}`);
    await this.#compareReplication();
    // The files name their tables without a keyspace.
    await this.#client.execute(`USE ${keyspace}`, [], { prepare: false });
    await this.#define(
      "CREATE TABLE IF NOT EXISTS schema_migrations (number int PRIMARY KEY, name text, checksum text, applied_at bigint)",
    );
  }

  /** The replication of a keyspace that exists is the operator's to change: it takes a repair to become true. */
  async #compareReplication(): Promise<void> {
    const { keyspace, datacenter, replicationFactor, logger } = this.#options;
    const query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    const standing: unknown = (await this.#client.execute(query, [keyspace])).first().get("replication");
    const factor = new Map(Object.entries(standing ?? {})).get(datacenter);
    if (Number(factor) !== replicationFactor)
      logger.warn({ keyspace, standing, replicationFactor }, "cassandra.replication_differs");
  }

  /** Those not applied yet; rejects when an applied one has changed. */
  async pendingOf(migrations: readonly Migration[]): Promise<Migration[]> {
    const result = await this.#client.execute("SELECT number, checksum FROM schema_migrations");
    const checksums = new Map(result.rows.map((row) => [Number(row.number), String(row.checksum)]));
    const changed = migrations.filter(({ number, checksum }) => (checksums.get(number) ?? checksum) !== checksum);
    if (changed.length === 0) return migrations.filter(({ number }) => !checksums.has(number));
    const names = changed.map(({ fileName }) => fileName).join(", ");
    throw new Error(`changed after it was applied to ${this.#options.keyspace}: ${names}; undo that and add a new file instead`);
  }

  async locked<T>(work: (lock: MigrationLock) => Promise<T>): Promise<T> {
    const lock = new MigrationLock(this.#client, `${hostname()} ${randomUUID()}`);
    await lock.take(this.#options.lockTimeoutMs ?? 120_000);
    try {
      return await work(lock);
    } finally {
      await lock.release();
    }
  }

  async apply(migration: Migration, lock: MigrationLock): Promise<void> {
    for (const [index, statement] of migration.statements.entries()) {
      await lock.extend();
      await this.#define(statement).catch((error: unknown) => {
        const place = `${migration.fileName}, statement ${index + 1} (${statement.split("\n", 1)[0]})`;
        throw new Error(`${place}: ${messageOf(error)}`, { cause: error });
      });
    }
    const { number, name, checksum } = migration;
    const appliedAt = microsFromMs(systemClock.nowMs());
    const query = "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (?, ?, ?, ?)";
    await this.#client.execute(query, [number, name, checksum, appliedAt]);
  }

  /**
   * A change of the schema, awaited until all nodes have it. Always through the same node: two that create one table at the
   * same time on different nodes would give it two ids.
   */
  async #define(statement: string): Promise<void> {
    const { info } = await this.#client.execute(statement, [], { prepare: false, host: this.#definingNode() });
    const agreed = "isSchemaInAgreement" in info && info.isSchemaInAgreement === true;
    if (!agreed) throw new Error("the nodes did not agree on the schema in time");
  }

  #definingNode(): Host {
    const hosts = this.#client.hosts.values().filter((host) => host.isUp() && host.datacenter === this.#options.datacenter);
    const [node] = hosts.sort((one, other) => (one.hostId.toString() < other.hostId.toString() ? -1 : 1));
    if (node === undefined) throw new Error(`no node of data centre ${this.#options.datacenter} is up`);
    return node;
  }
}
