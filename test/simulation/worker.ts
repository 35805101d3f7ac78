import { parentPort, workerData } from "node:worker_threads";
import { replaceModules } from "./module-replacement.ts";
import type { SeedRange } from "./run-seeds.ts";

replaceModules();
// Behind the replacement: it brings the services with it.
const { runSeeds } = await import("./run-seeds.ts");

parentPort?.postMessage(await runSeeds(workerData as SeedRange));
