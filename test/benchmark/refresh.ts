import type { Bench, Row } from "./bench.ts";
import { UsageMeter } from "./measure/process-usage.ts";
import type { RowResult } from "./measure/report.ts";
import { median } from "./measure/statistics.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";

const tokenCount = 1_000;
const bodyBytes = 1_024;
const warmUps = 5;
/** Of each case in a round; the round's figure is their median. */
const refreshesOfRound = 5;

interface Case {
  readonly latencyMs: number;
  readonly concurrency: number;
  readonly goal: number;
}

const cases: readonly Case[] = [
  { latencyMs: 100, concurrency: 50, goal: 1.15 },
  { latencyMs: 20, concurrency: 100, goal: 1.5 },
];

/** One owner waits for one refresh on an idle system: how long is that beside what the API alone would take? */
export const row: Row = {
  name: "refresh",
  title: `POST to completion event of ${tokenCount} tokens, one refresh after the other, as a multiple of ceil(${tokenCount}/C) × L; L is the API's latency, C the owner's ceiling`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench);
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const urls = await Promise.all(cases.map(({ latencyMs }) => stub.profile(`answers-in-${latencyMs}`, { latencyMs, bodyBytes })));
  const projects = await stage.createProjects(
    cases.map(({ concurrency }, index) => ({ url: urls[index] ?? "", maxConcurrency: concurrency })),
  );
  const samples: number[][] = cases.map(() => []);
  const meters = cases.map(() => new UsageMeter());
  const last: Requested[] = [];
  for (let round = -1; round < bench.rounds; round++) {
    for (const [index, project] of projects.entries()) {
      bench.turn(nameOf(cases[index]), round);
      const count = round < 0 ? warmUps : refreshesOfRound;
      const play = { stage, project, count, keep: (requested: Requested) => void last.splice(index, 1, requested) };
      if (round < 0) await refreshes(bench, play);
      else
        samples[index]?.push(
          (await meters[index]?.during(stage.processes, tokenCount * count, () => stub.watch(() => refreshes(bench, play)))) ?? 0,
        );
    }
  }
  const figures = await stub.takeFigures();
  stub.judgeLateness(figures);
  await stage.check(bench, last, { paths: figures.paths, bodyBytes });
  return {
    figures: cases.map((one, index) => ({
      name: nameOf(one),
      direction: "at most",
      goal: one.goal,
      samples: (samples[index] ?? []).map((ms) => ms / idealMs(one)),
    })),
    usage: Object.fromEntries(cases.map((one, index) => [nameOf(one), meters[index]?.lines() ?? []])),
    notes: cases.map(
      (one, index) => `${nameOf(one)}: ${samples[index]?.map(Math.round).join(", ")} ms; not possible below ${idealMs(one)} ms`,
    ),
    voidReason: stub.saturation,
  };
}

interface Play {
  readonly stage: Stage;
  readonly project: BenchProject;
  readonly count: number;
  readonly keep: (requested: Requested) => void;
}

/** The median milliseconds of refreshes one after the other. */
async function refreshes(bench: Bench, { stage, project, count, keep }: Play): Promise<number> {
  const times: number[] = [];
  for (let index = 0; index < count; index++) {
    const post = await stage.prepare(project, stage.freshTokenIds(tokenCount));
    const begin = performance.now();
    const requested = await post();
    times.push((await stage.completed(bench, [requested])) - begin);
    keep(requested);
  }
  return median(times);
}

const idealMs = ({ latencyMs, concurrency }: Case) => Math.ceil(tokenCount / concurrency) * latencyMs;
const nameOf = (one: Case | undefined) => `L ${one?.latencyMs} ms, C ${one?.concurrency}`;
