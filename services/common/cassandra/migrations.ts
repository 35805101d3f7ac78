import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseFileName, splitStatements } from "./statements.ts";

/** One numbered file of schemas/cassandra. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly fileName: string;
  readonly statements: readonly string[];
  /** SHA-256 of the statements: a comment may be corrected later, a statement may not. */
  readonly checksum: string;
}

/** The migrations of a folder by number; rejects with every mistake that the files have. */
export async function loadMigrations(folder: string): Promise<Migration[]> {
  const fileNames = (await readdir(folder)).filter((name) => name.endsWith(".cql")).sort();
  const loaded = await Promise.all(fileNames.map((fileName) => loadMigration(folder, fileName)));
  const migrations = loaded.filter((entry) => typeof entry !== "string");
  const problems = [...loaded.filter((entry) => typeof entry === "string"), ...sharedNumbers(migrations)];
  if (problems.length > 0) throw new Error(`the migrations in ${folder} cannot be used: ${problems.join("; ")}`);
  return migrations;
}

async function loadMigration(folder: string, fileName: string): Promise<Migration | string> {
  const parsedName = parseFileName(fileName);
  if (parsedName === undefined) return `${fileName}: the name must be a number of three digits from 001, "-", a name and .cql`;
  const split = splitStatements(await readFile(join(folder, fileName), "utf8"));
  if (!split.ok) return `${fileName}: ${split.problem}`;
  const checksum = createHash("sha256").update(split.statements.join(";\n")).digest("hex");
  return { ...parsedName, fileName, statements: split.statements, checksum };
}

function sharedNumbers(migrations: readonly Migration[]): string[] {
  return migrations
    .filter((migration, index) => migrations[index - 1]?.number === migration.number)
    .map((migration) => `${migration.fileName}: number ${migration.number} is taken`);
}
