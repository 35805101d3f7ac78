import type { Bench, Row } from "./bench.ts";
import type { RowResult } from "./measure/report.ts";
import { inTurns } from "./measure/rounds.ts";
import { ratios } from "./measure/statistics.ts";
import { BareLoop } from "./programs/bare-loop.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type Requested, Stage } from "./stage.ts";

const refreshCount = 5;
const tokensOfEach = 1_000;
const tokenCount = refreshCount * tokensOfEach;
const latencyMs = 100;
const concurrency = 100;
const bodyBytes = 1_024;
const warmUps = 2;

/** Where the API is what limits, nothing of ours may be seen. */
export const row: Row = {
  name: "latency-bound",
  title: `${refreshCount} refreshes of ${tokensOfEach} tokens of one collection, the owner allows ${concurrency} calls at once, the API answers after ${latencyMs} ms; tokens a second, first POST to last completion`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench);
  const cpu = 0;
  const stub = await bench.own(MetadataStub.start({ cpu }), (started) => started.stop());
  const bare = await bench.own(BareLoop.start({ cpu }), (started) => started.stop());
  const url = await stub.profile("slow", { latencyMs, bodyBytes });
  const [project] = await stage.createProjects([{ url, maxConcurrency: concurrency }]);
  if (project === undefined) throw new Error("no project was created");
  const api = { name: "API", pid: stub.pid };
  const requested: Requested[] = [];
  const refreshAll = async () => {
    const prepared = Array.from({ length: refreshCount }, () => stage.prepare(project, stage.freshTokenIds(tokensOfEach)));
    const posts = await Promise.all(prepared);
    const begin = performance.now();
    const refreshes = await Promise.all(posts.map((post) => post()));
    requested.push(...refreshes);
    return (await stage.completed(bench, refreshes)) - begin;
  };
  const loop = () => {
    const [first = ""] = stage.freshTokenIds(tokenCount);
    return bare.run({ url, firstTokenId: Number(first), count: tokenCount, concurrency });
  };
  const { samples, usage } = await inTurns(
    {
      pipeline: { processes: [...stage.processes, api], tokenCount, measure: () => stub.watch(refreshAll) },
      "bare loop": { processes: [{ name: "loop", pid: bare.pid }, api], tokenCount, measure: () => stub.watch(loop) },
    },
    { rounds: bench.rounds, warmUps, onTurn: (side, round) => bench.turn(side, round) },
  );
  const figures = await stub.takeFigures();
  stub.judgeLateness(figures);
  await stage.check(bench, requested.slice(-refreshCount), { paths: figures.paths, bodyBytes });
  return {
    figures: [
      { name: "of the bare loop", direction: "at least", goal: 0.95, samples: ratios(samples["bare loop"], samples.pipeline) },
      { name: "calls at once", direction: "at most", goal: concurrency, samples: [figures.mostUnderWay] },
    ],
    usage,
    notes: [
      `milliseconds: pipeline ${whole(samples.pipeline)}; bare loop ${whole(samples["bare loop"])}; not possible below ${(tokenCount / concurrency) * latencyMs}`,
    ],
    voidReason: stub.saturation,
  };
}

const whole = (values: readonly number[]) => values.map(Math.round).join(", ");
