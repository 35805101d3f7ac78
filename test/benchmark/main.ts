import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { Interrupted, onInterruption, unlessInterrupted } from "../../deploy/development/interruption.ts";
import { ensureStack } from "../../deploy/development/stack.ts";
import { createReporter } from "../../deploy/local/reporter.ts";
import { Bench, type Row } from "./bench.ts";
import { disturbance, readCpuTimes } from "./measure/foreign-work.ts";
import { describeMachine, serverProcesses } from "./measure/machine.ts";
import { failedRow, type ReportedRow, reportedRow, reportText, voided } from "./measure/report.ts";
import { rows } from "./rows.ts";

interface Options {
  readonly rounds: number;
  readonly json?: string;
}

const names = rows.map(({ name }) => name);
const command = new Command("bench")
  .description(
    "Measures the services on the real stack, beside what they are compared with, and reports which goals are reached.",
  )
  .argument("[rows...]", `which to measure: ${names.join(", ")}; all by default`)
  .option("--rounds <count>", "measured rounds of each row", atLeastOne, 5)
  .option("--json <file>", "writes the report as JSON, too")
  .parse();
const wanted = chosen(command.args);
const options = command.opts<Options>();

const reporter = createReporter(process.stderr);
const signal = onInterruption(reporter.line);
process.exitCode = await main().catch((error: unknown) => {
  reporter.line(
    error instanceof Interrupted ? "interrupted; nothing is reported" : String(error instanceof Error ? error.stack : error),
  );
  return error instanceof Interrupted ? 130 : 1;
});

/** 0 when every row could be measured, whatever it came to. */
async function main(): Promise<number> {
  await ensureStack(reporter);
  const header = await describeMachine(options.rounds);
  const reported: ReportedRow[] = [];
  for (const row of wanted) reported.push(await measure(row));
  const report = { header, rows: reported };
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, undefined, 2)}\n`);
  process.stdout.write(`${reportText(report)}\n`);
  return reported.every(({ problem }) => problem === null) ? 0 : 1;
}

/** A row that fails does not take the others with it. */
async function measure(row: Row): Promise<ReportedRow> {
  const servers = await serverProcesses();
  const before = readCpuTimes(servers);
  const outcome = await run(row);
  // Only now, with all children gone, is it known what was ours.
  const voidReason = disturbance(before, servers);
  return voidReason === undefined || outcome.problem !== null ? outcome : voided(outcome, voidReason);
}

async function run(row: Row): Promise<ReportedRow> {
  const bench = new Bench({ row: row.name, rounds: options.rounds, signal, reporter });
  const begin = performance.now();
  const seconds = () => (performance.now() - begin) / 1_000;
  try {
    const result = await reporter.during(() => bench.progress, unlessInterrupted(signal, row.run(bench)));
    return reportedRow(row, result, seconds());
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return failedRow(row, error instanceof Error ? error.message : String(error), seconds());
  } finally {
    // What was measured stands, whatever is left behind.
    const closing = bench.close().catch((error: unknown) => reporter.line(`${row.name}: not all was removed: ${error}`));
    await reporter.during(() => `${row.name}: stopping what was started`, closing);
  }
}

function chosen(wantedNames: readonly string[]): readonly Row[] {
  const unknown = wantedNames.filter((name) => !names.includes(name));
  if (unknown.length > 0) command.error(`error: there is no row ${unknown.join(", ")}; there are ${names.join(", ")}`);
  return wantedNames.length === 0 ? rows : rows.filter(({ name }) => wantedNames.includes(name));
}

function atLeastOne(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("must be a whole number from 1");
  return value;
}
