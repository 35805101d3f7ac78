import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { migrate } from "../../services/common/cassandra/migrate.ts";
import { type Cassandra, type CassandraOptions, connectCassandra } from "../../services/common/cassandra/session.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait-for.ts";
import { createKeyspace } from "./cassandra-keyspace.ts";

const keyspace = createKeyspace("session");
const opened: { close(): Promise<unknown> }[] = [];
let cassandra: Cassandra;
let folder: string;

async function open(options: Partial<CassandraOptions> = {}): Promise<Cassandra> {
  const session = await connectCassandra({ ...keyspace.cluster, ...options });
  opened.push(session);
  return session;
}

async function openThroughProxy(options: Partial<CassandraOptions> = {}) {
  const wire = await TcpProxy.to(keyspace.cluster.contactPoints[0] ?? "");
  const session = await open({ contactPoints: [wire.address], requestTimeoutMs: 3_000, ...options });
  opened.push({ close: () => wire.down() });
  return { wire, session };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "migrations-"));
  const things = `CREATE TABLE IF NOT EXISTS things (k text, c int, b bigint, u uuid, l frozen<list<text>>,
    m frozen<map<text, int>>, bytes blob, yes boolean, PRIMARY KEY ((k), c));`;
  const projects = "CREATE TABLE IF NOT EXISTS projects (project_id bigint PRIMARY KEY);";
  await writeFile(join(folder, "001-things.cql"), `${things}\n${projects}\n`);
  await migrate({ ...keyspace.cluster, replicationFactor: 1, folder });
  cassandra = await open();
});

afterAll(async () => {
  for (const one of opened.reverse()) await one.close();
  await keyspace.close();
  await rm(folder, { recursive: true });
});

const insert = "INSERT INTO things (k, c, b, u, l, m, bytes, yes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
const insertNumber = "INSERT INTO things (k, c, b) VALUES (?, ?, ?)";

describe("values", () => {
  it("come back as the documentation of Row says", async () => {
    const id = "0190a1b2-0000-7000-8000-000000000001";
    await cassandra.write(insert, [
      "types",
      1,
      2 ** 53 - 1,
      id.toUpperCase(),
      ["1", "2"],
      { a: 1 },
      new Uint8Array([0, 255]),
      true,
    ]);
    await cassandra.write(insert, ["types", 2, -(2n ** 63n), null, [], {}, Buffer.alloc(0), undefined]);
    expect(await cassandra.read("SELECT * FROM things WHERE k = ?", ["types"])).toEqual([
      { k: "types", c: 1, b: 9007199254740991n, u: id, l: ["1", "2"], m: { a: 1 }, bytes: Buffer.from([0, 255]), yes: true },
      { k: "types", c: 2, b: -(2n ** 63n), u: null, l: null, m: {}, bytes: Buffer.alloc(0), yes: null },
    ]);
  });

  it("that are absent write no tombstone, where the driver by itself would", async () => {
    const raw = await keyspace.raw();
    const before = (await keyspace.scan("things")).tombstoneCount;
    await cassandra.write(insert, ["absent", 1, null, null, [], null, undefined, null]);
    await cassandra.batch([{ query: insert, params: ["absent", 2, null, null, [], null, undefined, null] }]);
    await cassandra.writeIf(`${insert} IF NOT EXISTS`, ["absent", 3, null, null, [], null, undefined, null]);
    expect((await keyspace.scan("things")).tombstoneCount).toBe(before);
    await raw.execute(insertNumber, ["absent", 4, null], { prepare: true });
    expect((await keyspace.scan("things")).tombstoneCount).toBeGreaterThan(before);
  });

  it("that are absent leave the cell as it was", async () => {
    await cassandra.write(insertNumber, ["kept", 1, 7]);
    await cassandra.write(insertNumber, ["kept", 1, null]);
    expect(await cassandra.read("SELECT b FROM things WHERE k = ?", ["kept"])).toEqual([{ b: 7n }]);
  });
});

describe("reads and writes", () => {
  it("return all rows of a partition, over many pages", async () => {
    const rows = Array.from({ length: 5_500 }, (_, c) => ({ query: insertNumber, params: ["many", c, c] }));
    await cassandra.batch(rows.slice(0, 3_000));
    await cassandra.batch(rows.slice(3_000));
    const read = await cassandra.read("SELECT c FROM things WHERE k = ?", ["many"]);
    expect(read.map(({ c }) => c)).toEqual(rows.map((_, c) => c));
  });

  it("give pages that neither skip nor repeat, and no page state behind the last", async () => {
    await cassandra.batch(Array.from({ length: 7 }, (_, c) => ({ query: insertNumber, params: ["pages", c, c] })));
    const seen: unknown[] = [];
    let pageState: string | undefined;
    do {
      const state = pageState === undefined ? {} : { pageState };
      const page = await cassandra.readPage("SELECT c FROM things WHERE k = ?", ["pages"], { pageSize: 3, ...state });
      seen.push(...page.rows.map(({ c }) => c));
      pageState = page.pageState;
    } while (pageState !== undefined);
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it("keep the newer of two timestamps, whichever comes last", async () => {
    const query = "UPDATE things USING TIMESTAMP ? SET b = ? WHERE k = ? AND c = 1";
    await cassandra.batch([{ query, params: [2n ** 40n + 5n, 5, "order"] }]);
    await cassandra.batch([{ query, params: [2n ** 40n + 4n, 4, "order"] }]);
    expect(await cassandra.read("SELECT b, writetime(b) AS at FROM things WHERE k = ?", ["order"])).toEqual([
      { b: 5n, at: 2n ** 40n + 5n },
    ]);
  });

  it("withstand a thousand first uses of one statement at once", async () => {
    const query = "SELECT c, b FROM things WHERE k = ? AND c = 3";
    const rows = await Promise.all(Array.from({ length: 1_000 }, () => cassandra.read(query, ["pages"])));
    expect(new Set(rows.map(([row]) => row?.b))).toEqual(new Set([3n]));
  });

  it("write nothing for an empty batch", async () => {
    expect(await cassandra.batch([])).toBeUndefined();
  });
});

describe("a lightweight transaction", () => {
  it("is applied for one of many that want the same, and shows the winner to the others", async () => {
    const query = `${insertNumber} IF NOT EXISTS`;
    const tries = await Promise.all(Array.from({ length: 20 }, (_, number) => cassandra.writeIf(query, ["once", 1, number])));
    expect(tries.filter(({ applied }) => applied)).toEqual([{ applied: true, row: {} }]);
    const [winner] = await cassandra.read("SELECT b FROM things WHERE k = ? AND c = 1", ["once"]);
    const seen = tries.filter(({ applied }) => !applied).map(({ row }) => row.b);
    expect(new Set(seen)).toEqual(new Set([winner?.b]));
  });

  it("on a row that is not there is not applied and shows nothing", async () => {
    const tried = await cassandra.writeIf("UPDATE things SET b = 1 WHERE k = ? AND c = 1 IF EXISTS", ["nowhere"]);
    expect(tried).toEqual({ applied: false, row: {} });
  });
});

describe("a failure", () => {
  it.each<[string, string, readonly unknown[]]>([
    ["an unknown column", "SELECT nothing FROM things WHERE k = ?", ["x"]],
    ["a syntax error", "SELEC", []],
    ["a missing parameter", insertNumber, ["x", 1]],
    ["a text for a number", insertNumber, ["x", "one", 1]],
    ["a number too large for its column", insertNumber, ["x", 2 ** 40, 1]],
    ["no partition key", insertNumber, [null, 1, 1]],
    ["a text that is no uuid", "UPDATE things SET u = ? WHERE k = 'x' AND c = 1", ["x"]],
  ])("by our own mistake is not to be tried again: %s", async (_what, query, params) => {
    await expect(cassandra.write(query, params)).rejects.toMatchObject({ failure: "invalid", retryable: false, query });
  });

  it("of a page state that was tampered with is our caller's mistake", async () => {
    const page = cassandra.readPage("SELECT c FROM things WHERE k = ?", ["x"], { pageSize: 1, pageState: "00ff00ff" });
    await expect(page).rejects.toMatchObject({ failure: "invalid" });
  });

  it("of a silent cluster is known within the time-out, as one whose effect is unknown", async () => {
    const { wire, session } = await openThroughProxy();
    // What is sent has to be prepared first, and that would be what goes unanswered.
    await session.writeIf(`${insertNumber} IF NOT EXISTS`, ["silence", 0, 1]);
    await session.write(insertNumber, ["silence", 0, 1]);
    wire.inject("toClient", { blackHole: true });
    const tried = session.writeIf(`${insertNumber} IF NOT EXISTS`, ["silence", 1, 1]);
    // Sent twice it would find its own row and say "not applied".
    await expect(tried).rejects.toMatchObject({ failure: "timed_out", retryable: true });
    await expect(session.write(insertNumber, ["silence", 2, 1])).rejects.toMatchObject({ failure: "timed_out" });
    expect(await session.health()).toMatch(/does not answer/);
    const rows = await cassandra.read("SELECT c FROM things WHERE k = ?", ["silence"]);
    expect(rows.map(({ c }) => c)).toEqual([0, 1, 2]);
  });

  it("ends by itself when the cluster is back", async () => {
    const { wire, session } = await openThroughProxy();
    expect(await session.health()).toBeUndefined();
    await wire.down();
    await expect(session.read("SELECT c FROM things WHERE k = ?", ["x"])).rejects.toMatchObject({ retryable: true });
    const down = session.read("SELECT c FROM things WHERE k = ?", ["x"]);
    await expect(down).rejects.toMatchObject({ failure: "unavailable" });
    await wire.up();
    await waitFor(
      "health",
      () => session.health(),
      (text) => text === undefined,
    );
    expect(await session.read("SELECT c FROM things WHERE k = ?", ["types"])).toHaveLength(2);
  });

  it("of one request behind many is told when its wait is over, not when the cluster is back", async () => {
    const { wire, session } = await openThroughProxy({ maxInFlight: 2, maxWaitMs: 100 });
    await session.write(insertNumber, ["queue", 0, 1]);
    wire.inject("toClient", { blackHole: true });
    const results = await Promise.allSettled([1, 2, 3, 4].map((c) => session.write(insertNumber, ["queue", c, 1])));
    const failures = results.map((result) => (result.status === "rejected" ? result.reason.failure : "none"));
    expect(failures).toEqual(["timed_out", "timed_out", "unavailable", "unavailable"]);
  });
});

describe("connecting", () => {
  it("waits for a keyspace that is still being made", async () => {
    const later = createKeyspace("later");
    const connecting = connectCassandra({ ...later.cluster, connectTimeoutMs: 20_000 });
    await migrate({ ...later.cluster, replicationFactor: 1, folder });
    const session = await connecting;
    expect(await session.health()).toBeUndefined();
    await session.close();
    await later.close();
  });

  it.each([
    ["nobody listens", { contactPoints: ["127.0.0.1:1"] }, /127\.0\.0\.1:1 .*cannot be used/],
    ["the keyspace does not exist", { keyspace: "no_such_keyspace" }, /with keyspace no_such_keyspace cannot be used/],
    ["the data centre has another name", { datacenter: "elsewhere" }, /data centre elsewhere.* cannot be used/],
  ])("gives up with an explanation when %s", async (_what, options, explanation) => {
    await expect(open({ ...options, connectTimeoutMs: 600 })).rejects.toThrow(explanation);
  });
});
