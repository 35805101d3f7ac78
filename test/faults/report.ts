import type { ScenarioResult } from "./run.ts";
import { type Invariant, invariants } from "./verify/finding.ts";

export interface Report {
  readonly startedAt: string;
  readonly seed: number;
  readonly scenarios: readonly ScenarioResult[];
}

const shownWrong = 5;

/** For people: what holds in which scenario, and below it everything that does not. */
export function reportText({ startedAt, seed, scenarios }: Report): string {
  const failed = scenarios.filter(({ passed }) => !passed).length;
  const seconds = scenarios.reduce((sum, one) => sum + one.seconds, 0);
  return [
    `faults of ${startedAt}, seed ${seed}: ${scenarios.length} scenarios in ${Math.round(seconds)} s, ${failed} failed`,
    table(scenarios),
    "✓ holds   ✗ does not   · nothing to see of it in this scenario",
    ...scenarios.map(detailsOf).filter((text) => text !== ""),
    failed === 0 ? "Every guarantee held." : `Run one again: npm run faults -- <scenario> --seed ${seed}`,
  ].join("\n\n");
}

/** One line when it is over. */
export function lineOf({ name, passed, counts, findings, problem, seconds }: ScenarioResult): string {
  const what =
    problem !== null
      ? `could not be carried out: ${problem.split("\n", 1)[0]}`
      : counts === null
        ? ""
        : `${counts.refreshes} refreshes, ${counts.tokens} tokens, ${counts.calls} calls (${counts.repeatedCalls} repeated), ${findings.length} checks`;
  return `${passed ? "✓" : "✗"} ${name}: ${what}, ${Math.round(seconds)} s`;
}

const columns: readonly Invariant[] = [...invariants, "alive"];

function table(scenarios: readonly ScenarioResult[]): string {
  const head = [
    "scenario",
    ...columns.map((name) => name.replace("I", "")),
    "refreshes",
    "tokens",
    "calls",
    "repeated",
    "faults",
    "s",
  ];
  return aligned([head, ...scenarios.map(rowOf)]);
}

function rowOf({ name, findings, counts, seconds, problem }: ScenarioResult): string[] {
  const marks = columns.map((invariant) => {
    const of = findings.filter((finding) => finding.invariant === invariant);
    if (of.length === 0) return problem === null ? "·" : "?";
    return of.every(({ wrong }) => wrong.length === 0) ? "✓" : "✗";
  });
  const { refreshes = 0, tokens = 0, calls = 0, repeatedCalls = 0, faults = 0 } = counts ?? {};
  return [name, ...marks, ...[refreshes, tokens, calls, repeatedCalls, faults, Math.round(seconds)].map(String)];
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const cell = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(cell).join(" ").trimEnd()).join("\n");
}

/** What was measured, and what does not hold; empty when there is nothing to say. */
export function detailsOf({ name, title, problem, findings, faults, measures }: ScenarioResult): string {
  const broken = findings.filter(({ wrong }) => wrong.length > 0);
  if (problem === null && broken.length === 0 && measures.length === 0) return "";
  return [
    `${name}: ${title}`,
    ...measures.map((text) => `  measured: ${text}`),
    ...(problem === null ? [] : [`  could not be carried out: ${problem}`]),
    ...(broken.length === 0 ? [] : [`  faults: ${faults.join("; ")}`]),
    ...broken.flatMap(({ invariant, promise, expected, found, wrong }) => [
      `  ✗ ${invariant}, ${promise}: expected ${expected}, found ${found}`,
      ...wrong.slice(0, shownWrong).map((sentence) => `      ${sentence}`),
      ...(wrong.length > shownWrong ? [`      and ${wrong.length - shownWrong} more`] : []),
    ]),
  ].join("\n");
}
