import { writeFileSync } from "node:fs";
import { Command, InvalidArgumentError } from "commander";
import { Interrupted, onInterruption, unlessInterrupted } from "../../deploy/development/interruption.ts";
import { ensureStack } from "../../deploy/development/stack.ts";
import { createReporter } from "../../deploy/local/reporter.ts";
import { catalogue } from "./catalogue.ts";
import { detailsOf, lineOf, reportText } from "./report.ts";
import { Runner, type ScenarioResult } from "./run.ts";
import type { Scenario } from "./scenario.ts";
import { soak } from "./soak.ts";

interface Options {
  readonly seed: number;
  readonly minutes: number;
  readonly list?: true;
  readonly json?: string;
}

const command = new Command("faults")
  .description("Breaks the services under load, on the real stack, and holds what is left against every guarantee of the README.")
  .argument("[scenarios...]", "which to run, by name or by the beginning of a name; all by default. soak: see --minutes")
  .option(
    "--seed <number>",
    "decides load and moments; printed, so that a run can be made again",
    wholeNumber,
    Date.now() % 1_000_000,
  )
  .option(
    "--minutes <number>",
    "how long a soak lasts: 60 % of the load this machine can do, a fault every minute",
    wholeNumber,
    60,
  )
  .option("--list", "lists the scenarios")
  .option("--json <file>", "writes the results as JSON, too")
  .parse();
const options = command.opts<Options>();
const reporter = createReporter(process.stderr);

if (options.list) {
  const width = Math.max(...catalogue.map(({ name }) => name.length));
  for (const { name, title } of catalogue) process.stdout.write(`${name.padEnd(width)}  ${title}\n`);
} else {
  const signal = onInterruption(reporter.line);
  process.exitCode = await main(command.args, signal).catch((error: unknown) => {
    const wasInterrupted = error instanceof Interrupted;
    reporter.line(wasInterrupted ? "interrupted; nothing is reported" : `${error instanceof Error ? error.stack : error}`);
    // The scenario that was left waits for refreshes that nobody works on any more.
    if (wasInterrupted) process.exit(130);
    return 1;
  });
}

/** 0 when every check of every scenario held. */
async function main(names: readonly string[], signal: AbortSignal): Promise<number> {
  const { seed, json } = options;
  const startedAt = new Date().toISOString();
  const scenarios = names.includes("soak") ? [] : chosen(names);
  await ensureStack(reporter);
  reporter.line(`seed ${seed}`);
  const results = names.includes("soak") ? [await runSoak(signal)] : await runAll(scenarios, signal);
  const report = { startedAt, seed, scenarios: results };
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, undefined, 2)}\n`);
  process.stdout.write(`${reportText(report)}\n`);
  return results.every(({ passed }) => passed) ? 0 : 1;
}

async function runAll(scenarios: readonly Scenario[], signal: AbortSignal): Promise<ScenarioResult[]> {
  let doing = "";
  const tell = (what: string) => {
    doing = what;
  };
  const runner = new Runner({ seed: options.seed, signal, tell });
  const results: ScenarioResult[] = [];
  try {
    for (const scenario of scenarios) {
      const progress = () => `${results.length + 1} of ${scenarios.length}, ${scenario.name}: ${doing}`;
      const result = await reporter.during(progress, unlessInterrupted(signal, runner.run(scenario)));
      reporter.line(lineOf(result));
      // At once: a run of all scenarios takes half an hour.
      if (!result.passed) reporter.line(detailsOf(result));
      results.push(result);
    }
  } finally {
    await reporter.during(() => "stopping what was started", runner.close());
  }
  return results;
}

/** It ends by itself when it is interrupted, and closes what it started. */
function runSoak(signal: AbortSignal): Promise<ScenarioResult> {
  let doing = "";
  const tell = (what: string) => {
    signal.throwIfAborted();
    doing = what;
  };
  return reporter.during(() => `soak: ${doing}`, soak({ seed: options.seed, minutes: options.minutes, signal, tell }));
}

function chosen(wanted: readonly string[]): readonly Scenario[] {
  if (wanted.length === 0) return catalogue.filter(({ onRequest }) => !onRequest);
  const found = wanted.flatMap((name) => {
    const exact = catalogue.filter((scenario) => scenario.name === name);
    const matching = exact.length > 0 ? exact : catalogue.filter((scenario) => scenario.name.startsWith(name));
    if (matching.length === 0) command.error(`error: there is no scenario ${name}; see --list`);
    return matching;
  });
  return [...new Set(found)];
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError("must be a whole number, 0 or more");
  return value;
}
