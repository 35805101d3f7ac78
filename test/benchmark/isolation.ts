import { setTimeout as sleep } from "node:timers/promises";
import { serviceNames } from "../../deploy/development/service-process.ts";
import { ArrivalWatch } from "./arrivals.ts";
import type { Bench, Row } from "./bench.ts";
import { type FifoLoad, fifoWaitsMs } from "./isolation-fifo.ts";
import { createProjectsOn, splitAll } from "./isolation-stage.ts";
import type { RowResult } from "./measure/report.ts";
import { median, quantile } from "./measure/statistics.ts";
import type { Figure } from "./measure/verdict.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type Program, startProgram } from "./programs/program.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";

/** How many projects hang, one after the other in one environment. */
const levels = [0, 1, 5, 10] as const;
const mostHanging = 10;
const refreshesOfEach = 20;
const tokensOfEach = 1_000;

/** All that hang share one partition of the fetch topics. Two healthy projects are measured beside them at the same time. */
const hangingPartition = 0;
const placements = [
  { name: "another partition", partition: 5 },
  { name: "same partition", partition: hangingPartition },
] as const;
type Placement = (typeof placements)[number];

/** A healthy project: 200 tokens a second in small refreshes, far below what its API can take. */
const probe = { tokens: 20, everyMs: 100, latencyMs: 20 };
/** While the others' tokens are still being distributed, and when they have been. */
const arrivingSeconds = 8;
const steadySeconds = 12;
/** A token that has not come by then counts as this long. */
const longestMs = 30_000;
const bodyBytes = 1_024;
/** For the goodput: many tokens at once, of another healthy project, whose API's latency sets the pace and not this machine. */
const bulk = { refreshes: 5, latencyMs: 200 };

export const row: Row = {
  name: "isolation",
  title: `a healthy project (${1_000 / probe.everyMs} refreshes of ${probe.tokens} tokens a second, API ${probe.latencyMs} ms) beside 0, 1, 5 and 10 that hang to 3 s on every token, ${refreshesOfEach * tokensOfEach} tokens queued each`,
  run: measure,
};

interface LevelFigures {
  readonly arrivingP99Ms: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Tokens a second. */
  readonly goodput: number;
  readonly hangingUnderWay: number;
}

async function measure(bench: Bench): Promise<RowResult> {
  const rounds: Round[] = [];
  for (let round = 1; round <= bench.rounds; round++) rounds.push(await measureRound(bench, `round ${round} of ${bench.rounds}`));
  return {
    figures: placements.flatMap((placement, index) => judged(placement, levelsOf(rounds, index))),
    usage: {},
    notes: [
      "latency: from when the refresh was due to be posted to the arrival of each token's state at a consumer; judged from " +
        `${arrivingSeconds} s after the hanging projects' tokens have been queued and split; goodput: ${bulk.refreshes * tokensOfEach} tokens at once of another healthy project in the same partition as the first, API ${bulk.latencyMs} ms, from the first POST to the last completion`,
      ...fifoNotes(),
      ...placements.flatMap((placement, index) => {
        const measured = levelsOf(rounds, index);
        return levels.map((level, at) => `${placement.name}, ${level} hanging: ${told(measured.flatMap((of) => of[at] ?? []))}`);
      }),
    ],
    voidReason: rounds.find(({ voidReason }) => voidReason !== undefined)?.voidReason,
  };
}

interface Round {
  /** By level, then by placement. */
  readonly levels: readonly (readonly LevelFigures[])[];
  readonly voidReason: string | undefined;
}

function levelsOf(rounds: readonly Round[], placement: number): LevelFigures[][] {
  return rounds.map((round) => round.levels.flatMap((placed) => placed[placement] ?? []));
}

/** Two healthy projects of one partition: the second one has many tokens at once. */
interface Place {
  readonly healthy: BenchProject;
  readonly hungry: BenchProject;
}

interface Scene {
  readonly stage: Stage;
  readonly states: ArrivalWatch;
  readonly hanging: Program;
  readonly places: readonly Place[];
}

/** A round has an environment of its own, in which the number of hanging projects only grows. */
async function measureRound(bench: Bench, what: string): Promise<Round> {
  const stage = await Stage.open(bench);
  const { env, topics } = stage.system.environment;
  const states = await bench.own(ArrivalWatch.start(env, topics.tokenState), (watch) => watch.close());
  const stub = await bench.own(MetadataStub.start(), (started) => started.stop());
  const hanging = await bench.own(
    Promise.resolve(startProgram(new URL("isolation-hanging-program.ts", import.meta.url))),
    (started) => started.stop(),
  );
  const urls = await hanging.call<string[]>("listen", { count: mostHanging });
  const others = await createProjectsOn(
    stage,
    urls.map((url) => ({ url, partition: hangingPartition })),
  );
  const scene: Scene = { stage, states, hanging, places: await createPlaces(stage, stub) };
  bench.doing(`${what}: warming up`);
  for (const place of scene.places) await measureBulk(bench, scene, place);
  await probeAll(bench, scene, 3);
  const measured: LevelFigures[][] = [];
  for (const [index, level] of levels.entries()) {
    bench.doing(`${what}: queueing the tokens of ${level} hanging projects`);
    await flood(stage, others.slice(levels[index - 1] ?? 0, level));
    await splitAll(bench, stage);
    bench.doing(`${what}: ${level} hanging`);
    measured.push(await measureLevel(bench, scene));
  }
  stub.judgeLateness(await stub.takeFigures());
  await Promise.all(serviceNames.map((name) => stage.system.service(name).stop()));
  return { levels: measured, voidReason: stub.saturation };
}

async function createPlaces(stage: Stage, stub: MetadataStub): Promise<Place[]> {
  const places: Place[] = [];
  for (const { partition } of placements) {
    const [healthy, hungry] = await createProjectsOn(stage, [
      { url: await stub.profile("healthy", { latencyMs: probe.latencyMs, bodyBytes }), partition },
      { url: await stub.profile("hungry", { latencyMs: bulk.latencyMs, bodyBytes }), partition },
    ]);
    if (healthy === undefined || hungry === undefined) throw new Error("no project was created");
    places.push({ healthy, hungry });
  }
  return places;
}

async function flood(stage: Stage, projects: readonly BenchProject[]): Promise<void> {
  for (const project of projects) {
    const refreshes = Array.from({ length: refreshesOfEach }, () => stage.request(project, stage.freshTokenIds(tokensOfEach)));
    await Promise.all(refreshes);
  }
}

async function measureLevel(bench: Bench, scene: Scene): Promise<LevelFigures[]> {
  await scene.hanging.call("takeFigures");
  const arriving = await probeAll(bench, scene, arrivingSeconds);
  const steady = await probeAll(bench, scene, steadySeconds);
  const goodputs: number[] = [];
  for (const place of scene.places) goodputs.push(await measureBulk(bench, scene, place));
  const { underWay } = await scene.hanging.call<{ underWay: number }>("takeFigures");
  return goodputs.map((goodput, index) => ({
    arrivingP99Ms: quantile(arriving[index] ?? [], 0.99),
    p50Ms: quantile(steady[index] ?? [], 0.5),
    p99Ms: quantile(steady[index] ?? [], 0.99),
    goodput,
    hangingUnderWay: underWay,
  }));
}

function probeAll(bench: Bench, scene: Scene, seconds: number): Promise<number[][]> {
  return Promise.all(scene.places.map(({ healthy }) => probeFor(bench, scene, { healthy, seconds })));
}

/** Milliseconds of every token. Refreshes are signed beforehand and posted when they are due, whatever became of the ones before. */
async function probeFor(
  bench: Bench,
  scene: Scene,
  { healthy, seconds }: { healthy: BenchProject; seconds: number },
): Promise<number[]> {
  const { stage } = scene;
  const posts: (() => Promise<Requested>)[] = [];
  for (let due = 0; due < seconds * 1_000; due += probe.everyMs) {
    posts.push(await stage.prepare(healthy, stage.freshTokenIds(probe.tokens)));
  }
  const beginMs = performance.now();
  const refreshes: Promise<number[]>[] = [];
  for (const [index, post] of posts.entries()) {
    const dueMs = beginMs + index * probe.everyMs;
    await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal: bench.signal });
    const waiting = waits(bench, scene, { healthy, dueMs, refresh: post() });
    // One that fails is found when all are awaited, and must not end the process before.
    waiting.catch(() => undefined);
    refreshes.push(waiting);
  }
  return (await Promise.all(refreshes)).flat();
}

async function waits(
  bench: Bench,
  { states }: Scene,
  { healthy, dueMs, refresh }: { healthy: BenchProject; dueMs: number; refresh: Promise<Requested> },
): Promise<number[]> {
  const { tokenIds } = await refresh;
  const arrivals = tokenIds.map(async (tokenId) => {
    const arrival = states.of(`${healthy.collection}:${tokenId}`, { withinMs: longestMs, signal: bench.signal });
    const atMs = await arrival.catch(() => dueMs + longestMs);
    return Math.min(atMs - dueMs, longestMs);
  });
  return Promise.all(arrivals);
}

/** Tokens a second; 0 when they have not all come within two minutes. */
async function measureBulk(bench: Bench, { stage }: Scene, { hungry }: Place): Promise<number> {
  const wanted = Array.from({ length: bulk.refreshes }, () => stage.prepare(hungry, stage.freshTokenIds(tokensOfEach)));
  const posts = await Promise.all(wanted);
  const beginMs = performance.now();
  const requested = await Promise.all(posts.map((post) => post()));
  const endMs = await stage.completed(bench, requested).catch(() => Number.POSITIVE_INFINITY);
  bench.signal.throwIfAborted();
  return (bulk.refreshes * tokensOfEach * 1_000) / (endMs - beginMs);
}

function judged({ name }: Placement, rounds: readonly (readonly LevelFigures[])[]): Figure[] {
  return levels.slice(1).flatMap((level, index) => {
    const ofAlone = (pick: (figures: LevelFigures) => number) =>
      rounds.map((round) => {
        const [alone, beside] = [round[0], round[index + 1]];
        return alone === undefined || beside === undefined ? Number.NaN : pick(beside) / pick(alone);
      });
    const which = `${name}, ${level} hanging`;
    return [
      { name: `${which}: p99`, direction: "at most" as const, goal: 1.2, samples: ofAlone(({ p99Ms }) => p99Ms) },
      { name: `${which}: goodput`, direction: "at least" as const, goal: 0.9, samples: ofAlone(({ goodput }) => goodput) },
    ];
  });
}

function told(rounds: readonly LevelFigures[]): string {
  const of = (pick: (figures: LevelFigures) => number) => Math.round(median(rounds.map(pick)));
  return (
    `p50 ${of(({ p50Ms }) => p50Ms)} ms, p99 ${of(({ p99Ms }) => p99Ms)} ms (while they arrive ${of(({ arrivingP99Ms }) => arrivingP99Ms)} ms), ` +
    `${of(({ goodput }) => goodput)} tokens/s, ${of(({ hangingUnderWay }) => hangingUnderWay)} hanging calls under way`
  );
}

/** What the fetcher's own number of calls would come to without a scheduler. */
function fifoNotes(): string[] {
  const load = (hanging: number): FifoLoad => ({
    concurrency: 512,
    hangingTokens: hanging * refreshesOfEach * tokensOfEach,
    hangMs: 3_000,
    batchTokens: probe.tokens,
    everyMs: probe.everyMs,
    batches: (steadySeconds * 1_000) / probe.everyMs,
    callMs: probe.latencyMs,
  });
  const p99Ms = (hanging: number) => quantile(fifoWaitsMs(load(hanging)), 0.99);
  const alone = p99Ms(0);
  const told = levels
    .slice(1)
    .map((level) => `${level} hanging ${Math.round(p99Ms(level) / alone)} × (${Math.round(p99Ms(level) / 1_000)} s)`);
  return [`first in, first out with 512 calls at once, simulated on the same load, p99 against alone: ${told.join(", ")}`];
}
