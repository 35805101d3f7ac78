import { isDeepStrictEqual } from "node:util";
import type { Row } from "../../../services/common/cassandra/session.ts";
import { type ParsedStatement, parseStatement, readTables, type TableDefinition } from "./cql.ts";

interface Cell {
  readonly value: unknown;
  readonly timestamp: number;
}

type Cells = Map<string, Cell>;

export interface RowChange {
  readonly table: string;
  readonly row: Row;
}

const definitions = readTables();

/** Rows of cells, each with the timestamp of its write: the newest wins, whenever it comes. What Cassandra keeps. */
export class Tables {
  readonly #rows = new Map<string, Map<string, Cells>>();
  readonly #listeners: ((change: RowChange) => void)[] = [];
  readonly #conflicts: string[] = [];

  /** Two contents with one timestamp: Cassandra would keep the larger of each cell, a mixture. */
  get conflicts(): readonly string[] {
    return this.#conflicts;
  }

  /** After every write that was applied. */
  onChange(listener: (change: RowChange) => void): void {
    this.#listeners.push(listener);
  }

  /** `timestampMicros`: of a statement that names none. */
  write(query: string, params: readonly unknown[], timestampMicros: number): void {
    const statement = parseStatement(query);
    if (statement.kind !== "write") throw new Error(`not a write: ${query}`);
    const { table, columns, timestampPlace } = statement;
    const definition = definitionOf(table);
    const timestamp = timestampPlace === undefined ? timestampMicros : Number(params[timestampPlace]);
    const key = definition.keyColumns.map((column) => String(params[columns.get(column) ?? -1])).join("|");
    const cells = this.#cells(table, key);
    for (const [column, place] of columns) {
      const value = stored(params[place], definition.columns.get(column) ?? "");
      if (value === undefined) continue;
      const before = cells.get(column);
      const isKey = definition.keyColumns.includes(column);
      if (!isKey && before?.timestamp === timestamp && !isDeepStrictEqual(before.value, value)) {
        this.#conflicts.push(`${table} ${key}: ${column} at ${timestamp} is ${show(before.value)} and ${show(value)}`);
      }
      if (before === undefined || before.timestamp < timestamp) cells.set(column, { value, timestamp });
    }
    const change = { table, row: plain(cells) };
    for (const listener of this.#listeners) listener(change);
  }

  read(query: string, params: readonly unknown[]): Row[] {
    const statement = parseStatement(query);
    if (statement.kind !== "read") throw new Error(`not a read: ${query}`);
    const rows = this.#rows.get(statement.table);
    if (rows === undefined) return [];
    return keysOf(statement, params, rows).flatMap((key) => {
      const cells = rows.get(key);
      return cells === undefined ? [] : [select(cells, statement)];
    });
  }

  /** By the text of its whole key, parts joined by bars. */
  row(table: string, key: string): Row | undefined {
    const cells = this.#rows.get(table)?.get(key);
    return cells === undefined ? undefined : plain(cells);
  }

  /** Every row of a table, with all its columns. */
  all(table: string): Row[] {
    return [...(this.#rows.get(table)?.values() ?? [])].map(plain);
  }

  #cells(table: string, key: string): Cells {
    const rows = this.#rows.get(table) ?? new Map<string, Cells>();
    this.#rows.set(table, rows);
    const cells = rows.get(key) ?? new Map<string, Cell>();
    rows.set(key, cells);
    return cells;
  }
}

function definitionOf(table: string): TableDefinition {
  const definition = definitions.get(table);
  if (definition === undefined) throw new Error(`there is no table ${table}`);
  return definition;
}

/** The keys of the rows that are asked for. Half a key finds what begins with it. */
function keysOf(
  { table, where }: Extract<ParsedStatement, { kind: "read" }>,
  params: readonly unknown[],
  rows: ReadonlyMap<string, Cells>,
): string[] {
  const { keyColumns } = definitionOf(table);
  let keys = [""];
  for (const column of keyColumns) {
    const condition = where.find((entry) => entry.column === column);
    if (condition === undefined) {
      const begin = keys;
      return [...rows.keys()].filter((key) => begin.some((start) => key.startsWith(start)));
    }
    const given = params[condition.place];
    const values = condition.isList ? (given as readonly unknown[]) : [given];
    keys = keys.flatMap((start) => values.map((value) => `${start}${start === "" ? "" : "|"}${String(value)}`));
  }
  return [...new Set(keys)];
}

function select(cells: Cells, { table, selected }: Extract<ParsedStatement, { kind: "read" }>): Row {
  const row: Record<string, unknown> = {};
  const { columns } = definitionOf(table);
  for (const entry of selected) {
    const [, column, alias] = /^WRITETIME\((\w+)\) AS (\w+)$/.exec(entry) ?? [];
    if (column !== undefined && alias !== undefined) {
      const timestamp = cells.get(column)?.timestamp;
      row[alias] = timestamp === undefined ? null : BigInt(timestamp);
    } else row[entry] = given(cells.get(entry)?.value, columns.get(entry) ?? "");
  }
  return row;
}

function plain(cells: Cells): Row {
  return Object.fromEntries([...cells].map(([column, { value }]) => [column, value]));
}

/** A copy, in the form that can be compared: undefined leaves the cell as it is. */
function stored(value: unknown, type: string): unknown {
  if (value === null || value === undefined || (Array.isArray(value) && value.length === 0)) return undefined;
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (type === "bigint" || type === "int") return Number(value);
  if (typeof value === "object" && !Array.isArray(value)) {
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  return value;
}

/** As the session gives it: services/common/cassandra/values.ts. */
function given(value: unknown, type: string): unknown {
  if (value === undefined) return null;
  if (value instanceof Uint8Array) return Buffer.from(value);
  return type === "bigint" ? BigInt(value as number) : value;
}

const show = (value: unknown): string =>
  value instanceof Uint8Array ? Buffer.from(value).toString("hex") : JSON.stringify(value);
