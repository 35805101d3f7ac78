import { Command } from "commander";
import { ensureStack } from "../../deploy/development/stack.ts";
import { createReporter } from "../../deploy/local/reporter.ts";
import { Ledger } from "../support/ledger.ts";
import { TestSystem, tokenIdsFrom } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";

/** Not a test: what a machine makes of a refresh depends on the machine. Every run's result is checked all the same. */
const { runs, tokens, answer, concurrency } = new Command("benchmark")
  .description("From the POST of a refresh to its completion event, with all services on this machine.")
  .option("--runs <count>", "refreshes, one after the other", Number, 5)
  .option("--tokens <count>", "tokens of each", Number, 1000)
  .option("--answer <ms>", "how long the Metadata API takes for an answer", Number, 50)
  .option("--concurrency <count>", "the owner's ceiling", Number, 50)
  .parse()
  .opts<{ runs: number; tokens: number; answer: number; concurrency: number }>();

await ensureStack(createReporter(process.stderr));
const system = await TestSystem.start("benchmark", { settings: { REFRESHES_PER_HOUR: "1000000", LOG_LEVEL: "info" } });
const ledger = await Ledger.open(system.environment);
const ideal = (tokens * answer) / concurrency;
process.stdout.write(`${tokens} tokens, answers in ${answer} ms, at most ${concurrency} at once: not below ${ideal} ms\n`);
try {
  for (let run = 1; run <= runs; run++) process.stdout.write(`run ${run}: ${await measure()}\n`);
} finally {
  await ledger.close();
  await system.close();
}

async function measure(): Promise<string> {
  const project = await system.createProject({ maxConcurrency: concurrency });
  project.api.otherwise({ delayMs: answer });
  const tokenIds = tokenIdsFrom(1, tokens);
  const begin = performance.now();
  const refreshId = await system.refresh(project, tokenIds);
  const acceptedMs = performance.now() - begin;
  const seen = () => ledger.completions.records.some(({ key }) => key === refreshId);
  await waitFor("the completion event", seen, (yes) => yes, { withinMs: 120_000, everyMs: 1 });
  const completedMs = performance.now() - begin;
  await ledger.check({ project, refreshId, tokenIds });
  const first = project.api.calls[0];
  const firstCallMs = (first?.monotonicMs ?? 0) - begin;
  const lastCallMs = (project.api.calls.at(-1)?.endedMonotonicMs ?? 0) - begin;
  const times = { acceptedMs, firstCallMs, lastCallMs, completedMs };
  const texts = Object.entries(times).map(([name, ms]) => `${name} ${Math.round(ms)}`);
  return `${texts.join(", ")}, at most ${project.api.maxConcurrent} calls at once`;
}
