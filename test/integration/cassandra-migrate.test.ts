import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { migrate } from "../../services/common/cassandra/migrate.ts";
import { MigrationLock } from "../../services/common/cassandra/migration-lock.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { createKeyspace } from "./cassandra-keyspace.ts";

const cleanUps: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

async function setUp(files: Readonly<Record<string, string>>) {
  const keyspace = createKeyspace("migrate");
  const folder = await mkdtemp(join(tmpdir(), "migrations-"));
  cleanUps.push(keyspace.close, () => rm(folder, { recursive: true }));
  const write = async (more: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(more)) await writeFile(join(folder, name), text);
  };
  await write(files);
  return { keyspace, write, options: { ...keyspace.cluster, replicationFactor: 1, folder } };
}

const first = { "001-one.cql": "-- The first.\nCREATE TABLE IF NOT EXISTS one (k int PRIMARY KEY);\n" };
const second = {
  "002-two.cql": "CREATE TABLE IF NOT EXISTS two (k int PRIMARY KEY);\nALTER TABLE one ADD IF NOT EXISTS v int;\n",
};

describe("migrations", () => {
  it("are applied once each, in order, and later ones when they come", async () => {
    const { keyspace, options, write } = await setUp(first);
    expect(await migrate(options)).toEqual({ applied: ["001-one.cql"] });
    expect(await migrate(options)).toEqual({ applied: [] });
    await write(second);
    expect(await migrate(options)).toEqual({ applied: ["002-two.cql"] });
    const raw = await keyspace.raw();
    const { rows } = await raw.execute("SELECT number, name FROM schema_migrations");
    expect(rows.map(({ number, name }) => [number, name]).sort()).toEqual([
      [1, "one"],
      [2, "two"],
    ]);
    expect((await raw.execute("SELECT k, v FROM one")).rows).toEqual([]);
  });

  it("are applied once each when several processes start at once", async () => {
    const { options } = await setUp({ ...first, ...second });
    const results = await Promise.all(Array.from({ length: 4 }, () => migrate(options)));
    expect(results.flatMap(({ applied }) => applied).sort()).toEqual(["001-one.cql", "002-two.cql"]);
  });

  it("that were changed after they were applied are reported, and nothing else is applied", async () => {
    const { keyspace, options, write } = await setUp(first);
    await migrate(options);
    await write({ "001-one.cql": "CREATE TABLE IF NOT EXISTS one (k text PRIMARY KEY);\n", ...second });
    await expect(migrate(options)).rejects.toThrow(/changed after it was applied .*001-one\.cql/);
    await expect((await keyspace.raw()).execute("SELECT * FROM two")).rejects.toThrow(/two/);
  });

  it("may have their comments corrected", async () => {
    const { options, write } = await setUp(first);
    await migrate(options);
    await write({ "001-one.cql": "-- The very first.\n\nCREATE TABLE IF NOT EXISTS one (k int PRIMARY KEY);\n" });
    expect(await migrate(options)).toEqual({ applied: [] });
  });

  it("of a newer release are left alone by an older one", async () => {
    const newer = await setUp({ ...first, ...second });
    await migrate(newer.options);
    const older = await setUp(first);
    expect(await migrate({ ...older.options, keyspace: newer.options.keyspace })).toEqual({ applied: [] });
  });

  it("that fail say where, keep what stood before, and go on when they are corrected", async () => {
    const { options, write } = await setUp({
      ...first,
      "002-two.cql": "CREATE TABLE IF NOT EXISTS two (k int PRIMARY KEY);\nALTER TABLE three ADD v int;\n",
    });
    await expect(migrate(options)).rejects.toThrow(/002-two\.cql, statement 2 \(ALTER TABLE three ADD v int\): .*three/);
    await write(second);
    expect(await migrate(options)).toEqual({ applied: ["002-two.cql"] });
  });

  it("are refused before anything is touched when their files have mistakes, all named", async () => {
    const { options } = await setUp({
      "001-a.cql": "SELECT 1",
      "001-b.cql": "SELECT 1;",
      "two.cql": "SELECT 2;",
      "002-c.cql": "",
      "002-d.cql": "",
    });
    await expect(migrate({ ...options, contactPoints: ["127.0.0.1:1"] })).rejects.toThrow(
      /001-a\.cql: no semicolon after: SELECT 1; two\.cql: the name must be .*; 002-d\.cql: number 2 is taken/,
    );
  });
});

describe("the lock", () => {
  const held = (seconds: number) =>
    `INSERT INTO schema_migrations (number, name) VALUES (0, 'host-of-another') USING TTL ${seconds}`;

  it("of a process that died gives way by itself", async () => {
    const { keyspace, options, write } = await setUp(first);
    await migrate(options);
    await (await keyspace.raw()).execute(held(2));
    await write(second);
    expect(await migrate(options)).toEqual({ applied: ["002-two.cql"] });
  });

  it("that was lost while the process stood still stops it before the next statement", async () => {
    const { keyspace, options } = await setUp(first);
    await migrate(options);
    const raw = await keyspace.raw();
    const lock = new MigrationLock(raw, "sleeper");
    await lock.take(1_000);
    await lock.extend();
    await raw.execute("DELETE FROM schema_migrations WHERE number = 0 IF EXISTS");
    await new MigrationLock(raw, "next").take(1_000);
    await expect(lock.extend()).rejects.toThrow(/lock was lost/);
    await lock.release();
    await expect(new MigrationLock(raw, "third").take(0)).rejects.toThrow(/next/);
  });

  it("of a process that works is waited for in vain only so long, and its holder is named", async () => {
    const { keyspace, options, write } = await setUp(first);
    await migrate(options);
    await (await keyspace.raw()).execute(held(60));
    await write(second);
    await expect(migrate({ ...options, lockTimeoutMs: 300 })).rejects.toThrow(/host-of-another/);
    await expect((await keyspace.raw()).execute("SELECT * FROM two")).rejects.toThrow(/two/);
  });
});

it("a replication that differs from the setting is said, not silently kept", async () => {
  const { options } = await setUp(first);
  await migrate(options);
  const lines: string[] = [];
  const logger = createLogger("test", "info", { write: (line) => void lines.push(line) });
  await migrate({ ...options, replicationFactor: 3, logger });
  expect(lines.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ event: "cassandra.replication_differs", replicationFactor: 3 }),
  );
});
