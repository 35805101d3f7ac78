import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { loadMigrations } from "../../../../services/common/cassandra/migrations.ts";
import { parseFileName, splitStatements } from "../../../../services/common/cassandra/statements.ts";

describe("a migration file", () => {
  it.each([
    ["nothing", "", []],
    ["comments only", "-- one\n\n  -- two\n", []],
    ["one statement on one line", "CREATE TABLE a (b int PRIMARY KEY);", ["CREATE TABLE a (b int PRIMARY KEY)"]],
    ["Windows line ends", "SELECT 1;\r\nSELECT 2;\r\n", ["SELECT 1", "SELECT 2"]],
    [
      "a comment inside a statement",
      "CREATE TABLE a (\n  -- the key;\n  b int PRIMARY KEY\n);",
      ["CREATE TABLE a (\n  b int PRIMARY KEY\n)"],
    ],
    ["a semicolon inside a line", "INSERT INTO a (b) VALUES (';x');", ["INSERT INTO a (b) VALUES (';x')"]],
    ["blanks after the semicolon", "SELECT 1;   \nSELECT 2;", ["SELECT 1", "SELECT 2"]],
  ])("is split with %s", (_what, text, statements) => {
    expect(splitStatements(text)).toEqual({ ok: true, statements });
  });

  it("with text after its last semicolon is a mistake, not a statement that nobody runs", () => {
    expect(splitStatements("SELECT 1;\nSELECT 2\n")).toEqual({ ok: false, problem: "no semicolon after: SELECT 2" });
  });

  it.each([
    ["001-tables.cql", { number: 1, name: "tables" }],
    ["042-add-a-column.cql", { number: 42, name: "add-a-column" }],
    ["000-lock.cql", undefined],
    ["1-tables.cql", undefined],
    ["tables.cql", undefined],
    ["001_tables.cql", undefined],
    ["001-Tables.cql", undefined],
  ])("named %s is understood or refused", (fileName, parsed) => {
    expect(parseFileName(fileName)).toEqual(parsed);
  });
});

it("the project's own migrations can be loaded, each file once, in order", async () => {
  const folder = new URL("../../../../schemas/cassandra/", import.meta.url).pathname;
  const migrations = await loadMigrations(folder);
  expect(migrations.map(({ fileName }) => fileName)).toEqual((await readdir(folder)).sort());
  const repeatable = /^(CREATE TABLE IF NOT EXISTS|ALTER TABLE \w+ (ADD IF NOT EXISTS|WITH)) /;
  for (const { statements } of migrations) for (const statement of statements) expect(statement).toMatch(repeatable);
});
