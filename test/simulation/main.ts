import { Worker } from "node:worker_threads";
import { Command } from "commander";
import { replaceModules } from "./module-replacement.ts";
import type { SeedRange, SeedsReport } from "./run-seeds.ts";

// kafkajs waits otherwise when it is told that it is tested: a seed would tell another story.
delete process.env.NODE_ENV;

const program = new Command()
  .description("Runs the whole system through simulated worlds and prints the seeds that fail.")
  .option("--seeds <count>", "how many worlds", "1000")
  .option("--from <seed>", "the first seed", "1")
  .option("--workers <count>", "how many threads share them", "2")
  .option("--seed <seed>", "one world, told line by line")
  .option("--defect <name>", "with this bug switched on, until it is found")
  .option("--defects", "with each known bug in turn, until it is found")
  .option("--of <part>", "system, or scheduler: the fetcher's scheduler alone, with hosts that have hidden limits", "system")
  .option("--json", "the result as JSON")
  .parse();
const options = program.opts<{
  seeds: string;
  from: string;
  workers: string;
  seed?: string;
  defect?: string;
  defects?: boolean;
  of: string;
  json?: boolean;
}>();
const range = { from: Number(options.from), count: Number(options.seeds) };

if (options.of === "scheduler") await simulateScheduler(range);
else if (options.seed !== undefined) await tell(Number(options.seed), options.defect);
else if (options.defects) await findAll(range);
else await simulate(range);
process.exit();

async function simulate({ from, count }: SeedRange): Promise<void> {
  const step = options.defect === undefined ? Math.min(Number(options.workers), count) : 1;
  const shares = Array.from({ length: step }, (_, index) => ({ from: from + index, count: count - index, step }));
  const reports = await Promise.all(
    shares.map((share) => inWorker({ ...share, defect: options.defect, untilFound: options.defect !== undefined })),
  );
  const failures = reports.flatMap((report) => report.failures).sort((a, b) => a.seed - b.seed);
  const sum = (pick: (report: SeedsReport) => number): number => reports.reduce((total, report) => total + pick(report), 0);
  const { user, system } = process.cpuUsage();
  const report = {
    worlds: sum(({ worldCount }) => worldCount),
    events: sum(({ eventCount }) => eventCount),
    calls: sum(({ callCount }) => callCount),
    virtualHours: Math.round(sum(({ virtualMs }) => virtualMs) / 3_600_000),
    cpuSeconds: Math.round((user + system) / 1_000_000),
    failed: failures.length,
  };
  if (options.json) console.log(JSON.stringify({ ...report, failures }));
  else {
    for (const { seed, message } of failures.slice(0, 20)) console.log(`seed ${seed}: ${message.slice(0, 1_000)}`);
    const numbers = Object.entries(report).map(([name, value]) => `${value} ${name}`);
    console.log(numbers.join(", "));
    for (const { seed } of failures.slice(0, 1)) console.log(`told by: npm run simulate -- --seed ${seed}`);
  }
  process.exitCode = failures.length === 0 ? 0 : 1;
}

function inWorker(range: SeedRange): Promise<SeedsReport> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: range, execArgv: ["--no-warnings"] });
    worker.once("message", (report: SeedsReport) => {
      resolve(report);
      void worker.terminate();
    });
    worker.once("error", reject);
  });
}

async function tell(seed: number, defect: string | undefined): Promise<void> {
  replaceModules();
  // Behind the replacement: it brings the services with it.
  const { replay } = await import("./run-seeds.ts");
  const { trace, failure } = await replay(seed, defect);
  for (const line of trace.lines) console.log(line);
  console.log(failure ?? "every promise was kept");
  process.exitCode = failure === undefined ? 0 : 1;
}

async function findAll({ from, count }: SeedRange): Promise<void> {
  replaceModules();
  const { defects } = await import("./defects.ts");
  const { runSeeds } = await import("./run-seeds.ts");
  const results: object[] = [];
  for (const { name, foundAs } of defects) {
    const { failures, worldCount } = await runSeeds({ from, count, defect: name, untilFound: true });
    const [found] = failures;
    results.push({ name, worlds: worldCount, seed: found?.seed, message: found?.message });
    if (options.json) continue;
    const how = found === undefined ? "NOT FOUND" : `seed ${found.seed}: ${found.message.slice(0, 160)}`;
    console.log(`${name.padEnd(62)} ${String(worldCount).padStart(5)} worlds  ${how}`);
    process.exitCode = found !== undefined && foundAs.test(found.message) ? (process.exitCode ?? 0) : 1;
  }
  if (options.json) console.log(JSON.stringify(results));
}

async function simulateScheduler({ from, count }: SeedRange): Promise<void> {
  const { runRandomWorld } = await import("../unit/fetcher/core/simulation/random-world.ts");
  let failed = 0;
  for (let seed = from; seed < from + count; seed += 1) {
    try {
      runRandomWorld(seed);
    } catch (error) {
      failed += 1;
      if (failed <= 20) console.log(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  console.log(`${count} worlds of the scheduler, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}
