import { availableParallelism } from "node:os";
import type { Bench, Row } from "./bench.ts";
import type { RowResult } from "./measure/report.ts";
import { inTurns } from "./measure/rounds.ts";
import { ratios } from "./measure/statistics.ts";
import { BareLoop, type LoopStore } from "./programs/bare-loop.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { canPin } from "./programs/program.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";

const projectCount = 20;
const tokensOfEach = 1_000;
const tokenCount = projectCount * tokensOfEach;
const bodyBytes = 1_024;
/** Connections of the loops: where both are fastest. */
const concurrency = 64;
const warmUps = 3;

/**
 * Each loop stands where it is fastest and steady: the API has a processor of its own; the bare loop the other one; the naive loop shares
 * the API's, so that Cassandra has the other one. Services and servers go where the scheduler puts them.
 */
const cpus = { api: 0, bare: availableParallelism() - 1, naive: 0 };

const placement = canPin
  ? `placed by taskset: API on processor ${cpus.api}, bare loop on ${cpus.bare}, naive loop on ${cpus.naive}, everything else free`
  : "placed by the scheduler: there is no taskset here";

/** Pipeline with durable results against loops without a pipeline. */
export const row: Row = {
  name: "throughput",
  title: `${projectCount} refreshes of ${tokensOfEach} tokens of 1 KB, API latency 0, from the first POST to the last completion; each round alternates pipeline, bare loop, naive loop`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench);
  const stub = await bench.own(MetadataStub.start({ cpu: cpus.api }), (started) => started.stop());
  const bare = await bench.own(BareLoop.start({ cpu: cpus.bare }), (started) => started.stop());
  const environment = stage.system.environment.env;
  const naive = await bench.own(BareLoop.start({ cpu: cpus.naive, environment }), (started) => started.stop());
  const url = await stub.profile("fast", { latencyMs: 0, bodyBytes });
  const projects = await stage.createProjects(Array.from({ length: projectCount }, () => ({ url })));

  const requested: Requested[] = [];
  const api = { name: "API", pid: stub.pid };
  const loop = (program: BareLoop, store?: LoopStore) => async () => {
    const [first = ""] = stage.freshTokenIds(tokenCount);
    const job = { url, firstTokenId: Number(first), count: tokenCount, concurrency };
    return perSecond(await stub.watch(() => program.run(store === undefined ? job : { ...job, store })));
  };
  const { samples, usage } = await inTurns(
    {
      pipeline: {
        processes: [...stage.processes, api],
        tokenCount,
        measure: () => stub.watch(() => refreshAll(bench, { stage, projects, requested })),
      },
      "bare loop": { processes: [{ name: "loop", pid: bare.pid }, api], tokenCount, measure: loop(bare) },
      "naive loop": {
        processes: [{ name: "loop", pid: naive.pid }, api, ...stage.processes.filter(({ name }) => name === "cassandra")],
        tokenCount,
        measure: loop(naive, { collection: "naive", refreshId: "00000000-0000-4000-8000-000000000000" }),
      },
    },
    { rounds: bench.rounds, warmUps, onTurn: (side, round) => bench.turn(side, round) },
  );
  await stage.check(bench, requested.slice(-projectCount), { paths: (await stub.takeFigures()).paths, bodyBytes });
  const speeds = Object.entries(samples).map(
    ([side, values]) => `${side} ${values.map((value) => Math.round(value)).join(", ")}`,
  );
  return {
    figures: [
      {
        name: "of the bare loop",
        direction: "at least",
        goal: 0.2,
        floor: 0.15,
        samples: ratios(samples.pipeline, samples["bare loop"]),
      },
      {
        name: "of the naive loop",
        direction: "at least",
        goal: 1,
        floor: 0.7,
        samples: ratios(samples.pipeline, samples["naive loop"]),
      },
    ],
    usage,
    notes: [`tokens a second: ${speeds.join("; ")}`, placement],
    voidReason: stub.saturation,
  };
}

interface Play {
  readonly stage: Stage;
  readonly projects: readonly BenchProject[];
  readonly requested: Requested[];
}

/** Tokens a second. */
async function refreshAll(bench: Bench, { stage, projects, requested }: Play): Promise<number> {
  const posts = await Promise.all(projects.map((project) => stage.prepare(project, stage.freshTokenIds(tokensOfEach))));
  const begin = performance.now();
  const refreshes = await Promise.all(posts.map((post) => post()));
  requested.push(...refreshes);
  return perSecond((await stage.completed(bench, refreshes)) - begin);
}

function perSecond(ms: number): number {
  return (tokenCount * 1_000) / ms;
}
