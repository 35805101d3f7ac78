import { setTimeout as sleep } from "node:timers/promises";
import { ArrivalWatch } from "./arrivals.ts";
import type { Bench, Row } from "./bench.ts";
import type { RowResult } from "./measure/report.ts";
import { quantile } from "./measure/statistics.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";

const latencyMs = 20;
const bodyBytes = 1_024;
const projectCount = 12;
const trialsOfRound = 200;
const warmUps = 60;
/** Between two trials, so that the system is idle again and its long polls are at another point each time. */
const restMs = { least: 20, spread: 100 };

/** A single token on an idle system: the sum of all hops. */
export const row: Row = {
  name: "first-token",
  title: `POST of one token to its record of token.state at a consumer, idle system, beyond the API's own ${latencyMs} ms; ${trialsOfRound} trials a round over ${projectCount} projects, one for each partition`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench);
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const { env, topics } = stage.system.environment;
  const states = await bench.own(ArrivalWatch.start(env, topics.tokenState), (watch) => watch.close());
  const url = await stub.profile("one", { latencyMs, bodyBytes });
  const projects = await stage.createProjects(Array.from({ length: projectCount }, () => ({ url })));
  const [p50, p99, all]: [number[], number[], number[]] = [[], [], []];
  const last: Requested[] = [];
  for (let round = -1; round < bench.rounds; round++) {
    bench.turn("trials", round);
    const count = round < 0 ? warmUps : trialsOfRound;
    const excessMs = await trials(bench, { stage, states, projects, count, last });
    if (round < 0) continue;
    p50.push(quantile(excessMs, 0.5));
    p99.push(quantile(excessMs, 0.99));
    all.push(...excessMs);
  }
  const figures = await stub.takeFigures();
  stub.judgeLateness(figures);
  await stage.check(bench, last.slice(-projectCount), { paths: figures.paths, bodyBytes });
  const shares = [0.1, 0.5, 0.9, 0.99, 1].map((share) => `p${share * 100} ${quantile(all, share).toFixed(1)}`);
  return {
    figures: [
      { name: "p50 more than the API", direction: "at most", goal: 20, unit: "ms", samples: p50 },
      { name: "p99 more than the API", direction: "at most", goal: 80, unit: "ms", samples: p99 },
    ],
    usage: {},
    notes: [`over all ${all.length} trials, ms: ${shares.join(", ")}`],
    voidReason: stub.saturation,
  };
}

interface Play {
  readonly stage: Stage;
  readonly states: ArrivalWatch;
  readonly projects: readonly BenchProject[];
  readonly count: number;
  readonly last: Requested[];
}

async function trials(bench: Bench, { stage, states, projects, count, last }: Play): Promise<number[]> {
  const excessMs: number[] = [];
  for (let trial = 0; trial < count; trial++) {
    const project = projects[trial % projects.length];
    const [tokenId = ""] = stage.freshTokenIds(1);
    if (project === undefined) break;
    const post = await stage.prepare(project, [tokenId]);
    const begin = performance.now();
    const requested = post();
    const arrival = states.of(`${project.collection}:${tokenId}`, { withinMs: 30_000, signal: bench.signal });
    excessMs.push((await stage.unlessServiceEnds(arrival)) - begin - latencyMs);
    last.push(await requested);
    await sleep(restMs.least + Math.random() * restMs.spread, undefined, { signal: bench.signal });
  }
  return excessMs;
}
