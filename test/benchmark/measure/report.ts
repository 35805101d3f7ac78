import type { Header } from "./machine.ts";
import type { UsageLine } from "./process-usage.ts";
import { type Figure, type JudgedFigure, judge } from "./verdict.ts";

/** What a row has measured. */
export interface RowResult {
  readonly figures: readonly Figure[];
  /** By side, such as `pipeline` and `bare loop`: what every process used. */
  readonly usage: Readonly<Record<string, readonly UsageLine[]>>;
  /** One sentence each: how it was measured, and plain figures without a goal. */
  readonly notes: readonly string[];
  /** Why nothing that was measured counts; undefined when it does. */
  readonly voidReason?: string | undefined;
}

/** A row in the report; `problem` is set when it could not be measured at all. */
export interface ReportedRow {
  readonly name: string;
  readonly title: string;
  readonly figures: readonly JudgedFigure[];
  readonly usage: RowResult["usage"];
  readonly notes: readonly string[];
  readonly voidReason: string | null;
  readonly problem: string | null;
  readonly seconds: number;
}

export interface Report {
  readonly header: Header;
  readonly rows: readonly ReportedRow[];
}

export function reportedRow(row: { name: string; title: string }, result: RowResult, seconds: number): ReportedRow {
  const isVoid = result.voidReason !== undefined;
  return {
    name: row.name,
    title: row.title,
    figures: result.figures.map((figure) => judge(figure, isVoid)),
    usage: result.usage,
    notes: result.notes,
    voidReason: result.voidReason ?? null,
    problem: null,
    seconds,
  };
}

export function failedRow(row: { name: string; title: string }, problem: string, seconds: number): ReportedRow {
  return { name: row.name, title: row.title, figures: [], usage: {}, notes: [], voidReason: null, problem, seconds };
}

/** The same row, whose figures are shown and do not count. */
export function voided(row: ReportedRow, reason: string): ReportedRow {
  const voidReason = row.voidReason === null ? reason : `${row.voidReason}; ${reason}`;
  return { ...row, figures: row.figures.map((figure) => ({ ...figure, verdict: "void" })), voidReason };
}

/** The whole report as text for people. */
export function reportText({ header, rows }: Report): string {
  return [headerText(header), table(rows), ...rows.map(rowText)].join("\n\n");
}

function headerText(header: Header): string {
  const versions = Object.entries(header.versions).map(([name, version]) => `${name} ${version}`);
  const memory = `${Math.round(header.memoryBytes / 1024 ** 3)} GiB`;
  return [
    `benchmark of ${header.startedAt}, ${header.rounds} rounds: median (min–max) over the rounds`,
    `${header.cores} × ${header.processor}, ${memory}, load ${header.loadAtStart.toFixed(1)} at the start`,
    versions.join(", "),
  ].join("\n");
}

const columns = ["row", "figure", "goal", "floor", "measured", "spread", "verdict"];

function table(rows: readonly ReportedRow[]): string {
  return aligned([columns, ...rows.flatMap(tableLines)]);
}

function tableLines(row: ReportedRow): string[][] {
  if (row.problem !== null) return [[row.name, "", "", "", "", "", "not measured"]];
  return row.figures.map((figure) => {
    const sign = figure.direction === "at least" ? "≥" : "≤";
    const show = (value: number) => `${shown(value)}${figure.unit === undefined ? "" : ` ${figure.unit}`}`;
    const { median, min, max } = figure.summary;
    const floor = figure.floor === undefined ? "" : `${sign} ${show(figure.floor)}`;
    return [
      row.name,
      figure.name,
      `${sign} ${show(figure.goal)}`,
      floor,
      show(median),
      `${shown(min)}–${shown(max)}`,
      figure.verdict,
    ];
  });
}

function rowText(row: ReportedRow): string {
  const lines = [`${row.name}: ${row.title} (${Math.round(row.seconds)} s)`];
  if (row.problem !== null) lines.push(`  not measured: ${row.problem}`);
  if (row.voidReason !== null) lines.push(`  void: ${row.voidReason}`);
  lines.push(...row.notes.map((note) => `  ${note}`));
  for (const [side, processes] of Object.entries(row.usage)) lines.push(`  ${side}: ${usageText(processes)}`);
  return lines.join("\n");
}

function usageText(processes: readonly UsageLine[]): string {
  const sum = processes.reduce((total, { cpuMicrosPerToken }) => total + cpuMicrosPerToken, 0);
  const each = processes.map(
    ({ name, cpuMicrosPerToken, peakBytes }) => `${name} ${shown(cpuMicrosPerToken)} µs ${Math.round(peakBytes / 1024 ** 2)} MiB`,
  );
  return `CPU per token and peak memory: ${each.join(", ")}; together ${shown(sum)} µs`;
}

/** Three figures that mean something. */
export function shown(value: number): string {
  if (value === 0) return "0";
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(decimals, 4));
}

function aligned(lines: readonly (readonly string[])[]): string {
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
