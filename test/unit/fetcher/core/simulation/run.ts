import { Command } from "commander";
import { runRandomWorld } from "./random-world.ts";

const program = new Command()
  .description("Runs the fetcher's scheduler through random worlds and prints the seeds that fail.")
  .option("--seeds <count>", "how many worlds", "1000")
  .option("--from <seed>", "the first seed", "1")
  .parse();
const { seeds, from } = program.opts<{ seeds: string; from: string }>();

let failures = 0;
let calls = 0;
for (let seed = Number(from); seed < Number(from) + Number(seeds); seed++) {
  try {
    calls += runRandomWorld(seed).calls;
  } catch (error) {
    failures += 1;
    console.error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
console.log(`${seeds} worlds, ${calls} calls, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
