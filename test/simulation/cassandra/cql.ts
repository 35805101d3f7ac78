import { readdirSync, readFileSync } from "node:fs";

export interface TableDefinition {
  readonly name: string;
  /** Partition key and clustering columns. */
  readonly keyColumns: readonly string[];
  readonly partitionKeyColumns: readonly string[];
  readonly columns: ReadonlyMap<string, string>;
}

const folder = new URL("../../../schemas/cassandra/", import.meta.url);

/** The tables of schemas/cassandra, with the columns that later migrations added. */
export function readTables(): ReadonlyMap<string, TableDefinition> {
  const text = readdirSync(folder)
    .sort()
    .map((file) => readFileSync(new URL(file, folder), "utf8"))
    .join("\n")
    .replaceAll(/^--.*$/gm, "");
  const tables = new Map<string, TableDefinition>();
  for (const [, name = "", body = ""] of text.matchAll(/CREATE TABLE IF NOT EXISTS (\w+) \(([\s\S]*?)\n\)/g)) {
    tables.set(name, tableOf(name, body));
  }
  for (const [, name = "", column = "", type = ""] of text.matchAll(/ALTER TABLE (\w+) ADD IF NOT EXISTS (\w+) (\w+)/g)) {
    const table = tables.get(name);
    if (table !== undefined) tables.set(name, { ...table, columns: new Map([...table.columns, [column, type]]) });
  }
  return tables;
}

function tableOf(name: string, body: string): TableDefinition {
  const lines = body.split("\n").map((line) => line.trim().replace(/,$/, ""));
  const columns = new Map<string, string>();
  let keyText = "";
  for (const line of lines) {
    const key = /^PRIMARY KEY \((.*)\)$/.exec(line)?.[1];
    if (key !== undefined) keyText = key;
    else if (line !== "") {
      const [, column = "", type = "", single] = /^(\w+) (\S+?(?:<.*>)?)( PRIMARY KEY)?$/.exec(line) ?? [];
      columns.set(column, type);
      if (single !== undefined) keyText = `(${column})`;
    }
  }
  const words = (part: string): string[] => part.match(/\w+/g) ?? [];
  const partitionKeyColumns = words(/^\(([^)]*)\)/.exec(keyText)?.[1] ?? "");
  return { name, columns, partitionKeyColumns, keyColumns: words(keyText) };
}

/** A statement with its parameters' places: what the services write, and nothing else. */
export type ParsedStatement =
  | {
      readonly kind: "write";
      readonly table: string;
      /** Column by place of its parameter. */
      readonly columns: ReadonlyMap<string, number>;
      readonly timestampPlace: number | undefined;
    }
  | {
      readonly kind: "read";
      readonly table: string;
      readonly selected: readonly string[];
      /** Key column by place; those with `in` take a list. */
      readonly where: readonly { readonly column: string; readonly place: number; readonly isList: boolean }[];
    };

const parsed = new Map<string, ParsedStatement>();

export function parseStatement(query: string): ParsedStatement {
  const known = parsed.get(query);
  if (known !== undefined) return known;
  const text = query.replaceAll(/\s+/g, " ").trim();
  const statement = parseInsert(text) ?? parseUpdate(text) ?? parseSelect(text);
  if (statement === undefined) throw new Error(`the simulated Cassandra does not understand: ${text}`);
  parsed.set(query, statement);
  return statement;
}

function parseInsert(text: string): ParsedStatement | undefined {
  const [, table = "", names, using = ""] = /^INSERT INTO (\w+) \(([^)]*)\) VALUES \([?, ]+\)(?: USING (.*))?$/.exec(text) ?? [];
  if (names === undefined) return undefined;
  const columns = names.split(",").map((name) => name.trim());
  const timestampAt = using.split(" AND ").indexOf("TIMESTAMP ?");
  return {
    kind: "write",
    table,
    columns: new Map(columns.map((column, place) => [column, place])),
    timestampPlace: timestampAt === -1 ? undefined : columns.length + timestampAt,
  };
}

function parseUpdate(text: string): ParsedStatement | undefined {
  const [, table = "", using, set, where] = /^UPDATE (\w+) (USING TIMESTAMP \? )?SET (.*) WHERE (.*)$/.exec(text) ?? [];
  if (set === undefined || where === undefined) return undefined;
  const first = using === undefined ? 0 : 1;
  const names = [...set.split(", "), ...where.split(" AND ")].map((part) => part.replace(" = ?", "").trim());
  return {
    kind: "write",
    table,
    columns: new Map(names.map((column, index) => [column, first + index])),
    timestampPlace: using === undefined ? undefined : 0,
  };
}

function parseSelect(text: string): ParsedStatement | undefined {
  const [, selected, table = "", conditions = ""] = /^SELECT (.*) FROM (\w+)(?: WHERE (.*))?$/.exec(text) ?? [];
  if (selected === undefined) return undefined;
  const where = conditions
    .split(" AND ")
    .filter((part) => part !== "")
    .map((part, place) => {
      const [, column, operator] = /^(\w+) (=|IN) \?$/.exec(part) ?? [];
      if (column === undefined) throw new Error(`the simulated Cassandra does not understand the condition ${part}`);
      return { column, place, isList: operator === "IN" };
    });
  return { kind: "read", table, selected: selected.split(", "), where };
}
