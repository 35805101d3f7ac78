import { setTimeout as sleep } from "node:timers/promises";
import { createReporter } from "../../deploy/local/reporter.ts";
import type { Bench, Row } from "./bench.ts";
import { serverProcesses } from "./measure/machine.ts";
import { type RowResult, shown } from "./measure/report.ts";
import { inTurns, type Side } from "./measure/rounds.ts";
import { ratios } from "./measure/statistics.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { installRival } from "./rival/bullmq.ts";
import { Rival } from "./rival/rival.ts";
import type { RivalTuning } from "./rival/work.ts";
import { type BenchProject, Stage } from "./stage.ts";

const projectCount = 20;
const tokensOfEach = 1_000;
const tokenCount = projectCount * tokensOfEach;
const warmUps = 2;

/** The fastest that was found, with one job for each token: see the notes of the row. */
const tuning: RivalTuning = {
  processes: 1,
  concurrency: 512,
  workersPerProcess: 1,
  tokensPerJob: 1,
  autoPipelining: true,
  flushAfterMs: 20,
  flushRows: 250,
};

/** Many tokens in one job cost BullMQ next to nothing. Then it does not retry, delay or recover tokens, but fifty at a time. */
const tokensPerCoarseJob = 50;
/** As many calls at once as with small jobs: each is a connection, and the API refuses twenty thousand of them. */
const coarseTuning: Partial<RivalTuning> = {
  tokensPerJob: tokensPerCoarseJob,
  concurrency: Math.ceil(tuning.concurrency / tokensPerCoarseJob),
};
const coarseName = `rival with ${tokensPerCoarseJob} tokens a job`;

const notes = [
  "the rival: BullMQ 6.7, one job a token (BullMQ retries, delays and recovers jobs, nothing smaller), addBulk of 1000, ended jobs removed, " +
    `one or two worker processes of ${tuning.concurrency} jobs at once with auto-pipelining: what is faster in a round counts`,
  "it makes the fetcher's own guarded call and writes token rows in the aggregator's own batches, the facts of a refresh and its progress " +
    "row through the same code; it publishes no token.state and writes progress once, where the pipeline does at every step",
];

/** The pipeline against the same work on BullMQ, the job queue that Node services usually reach for. */
export const row: Row = {
  name: "rival",
  title: `${projectCount} refreshes of ${tokensOfEach} tokens of 1 KB, API latency 0, from the first acceptance to the last completion; pipeline against BullMQ workers, in turns`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  bench.doing("looking for BullMQ");
  await installRival(createReporter(process.stderr));
  const stage = await Stage.open(bench);
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const url = await stub.profile("fast", { latencyMs: 0, bodyBytes: 1_024 });
  const projects = await stage.createProjects(Array.from({ length: projectCount }, () => ({ url })));
  const api = { name: "API", pid: stub.pid };
  const rivalSide = async (difference: Partial<RivalTuning>): Promise<Side<number>> => {
    const rival = await bench.own(Rival.start(stage.system.environment.env, { ...tuning, ...difference }), (it) => it.close());
    const play = { rival, stage, projects };
    const processes = [...(await rivalProcesses(rival)), api];
    return { processes, tokenCount, measure: () => stub.watch(() => refreshAllWith(bench, play)) };
  };
  const refreshes = () => stub.watch(() => refreshAll(bench, stage, projects));
  const { samples, usage } = await inTurns(
    {
      pipeline: { processes: [...stage.processes, api], tokenCount, measure: refreshes },
      rival: await rivalSide({}),
      "rival of two processes": await rivalSide({ processes: 2 }),
      [coarseName]: await rivalSide(coarseTuning),
    },
    { rounds: bench.rounds, warmUps, onTurn: (side, round) => bench.turn(side, round) },
  );
  const twofoldSpeeds = samples["rival of two processes"];
  const faster = samples.rival.map((speed, round) => Math.max(speed, twofoldSpeeds[round] ?? 0));
  const speeds = Object.entries(samples).map(
    ([side, values]) => `${side} ${values.map((value) => Math.round(value)).join(", ")}`,
  );
  return {
    figures: [{ name: "of the rival", direction: "at least", goal: 2.5, samples: ratios(samples.pipeline, faster) }],
    usage,
    notes: [
      `tokens a second: ${speeds.join("; ")}`,
      `pipeline against the ${coarseName}, without a goal: ${ratios(samples.pipeline ?? [], samples[coarseName] ?? [])
        .map(shown)
        .join(", ")}`,
      ...notes,
    ],
    voidReason: stub.saturation,
  };
}

/** Its entrance runs in the benchmark's own process. */
async function rivalProcesses(rival: Rival) {
  const servers = (await serverProcesses()).filter(({ name }) => name === "redis" || name === "cassandra");
  const workers = rival.pids.map((pid, index) => ({ name: `worker ${index + 1}`, pid }));
  return [{ name: "entrance", pid: process.pid }, ...workers, ...servers];
}

/** Tokens a second. */
async function refreshAll(bench: Bench, stage: Stage, projects: readonly BenchProject[]): Promise<number> {
  const posts = await Promise.all(projects.map((project) => stage.prepare(project, stage.freshTokenIds(tokensOfEach))));
  const begin = performance.now();
  const refreshes = await Promise.all(posts.map((post) => post()));
  return perSecond((await stage.completed(bench, refreshes)) - begin);
}

interface RivalPlay {
  readonly rival: Rival;
  readonly stage: Stage;
  readonly projects: readonly BenchProject[];
}

async function refreshAllWith(bench: Bench, { rival, stage, projects }: RivalPlay): Promise<number> {
  const begin = performance.now();
  const accepted = await Promise.all(
    projects.map(({ projectId, collection, url }) =>
      rival.accept({ projectId, collection, apiUrl: url, tokenIds: stage.freshTokenIds(tokensOfEach) }),
    ),
  );
  await within(bench, "the rival's completions", Promise.all(accepted.map(({ ended }) => ended)));
  return perSecond(performance.now() - begin);
}

/** A job that failed for good completes nothing: its reason stands in the output. */
async function within<T>(bench: Bench, what: string, work: Promise<T>): Promise<T> {
  const patience = new AbortController();
  const tooLate = sleep(120_000, undefined, { signal: AbortSignal.any([bench.signal, patience.signal]) }).then(() => {
    throw new Error(`${what} have not come within two minutes`);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    patience.abort();
    tooLate.catch(() => undefined);
  }
}

function perSecond(ms: number): number {
  return (tokenCount * 1_000) / ms;
}
