import { setTimeout as sleep } from "node:timers/promises";
import { serviceNames } from "../../deploy/development/service-process.ts";
import type { Bench, Row } from "./bench.ts";
import { readAll } from "./isolation-stage.ts";
import { readUsage } from "./measure/process-usage.ts";
import type { RowResult } from "./measure/report.ts";
import { median } from "./measure/statistics.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";
import { TopicEnds } from "./topic-ends.ts";

const slow = { projects: 50, refreshesOfEach: 20, tokensOfEach: 1_000, latencyMs: 2_500, maxConcurrency: 1 };
const queuedCount = slow.projects * slow.refreshesOfEach * slow.tokensOfEach;
/** What else the pipeline can do is measured with these. */
const other = { projects: 12, tokensOfEach: 1_000 };
const bodyBytes = 1_024;
const warmUps = 3;
const holdMs = 60_000;
const lookMs = 500;
const postsAtOnce = 8;
const mebibyte = 1_024 ** 2;

/** A million tokens whose APIs are slow: they have to wait somewhere, and neither in memory nor at the cost of others. */
export const row: Row = {
  name: "memory",
  title: `${queuedCount.toLocaleString("en")} tokens queued (${slow.projects} projects × ${slow.refreshesOfEach} refreshes × ${slow.tokensOfEach}, one call at once of ${slow.latencyMs} ms each): peak of each service since its start; once they have been read: growth over ${holdMs / 1_000} s, and what ${other.projects} other projects can do meanwhile`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench);
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const fastUrl = await stub.profile("fast", { latencyMs: 0, bodyBytes });
  const slowUrl = await stub.profile("slow", { latencyMs: slow.latencyMs, bodyBytes });
  const others = await stage.createProjects(Array.from({ length: other.projects }, () => ({ url: fastUrl })));
  const wish = { url: slowUrl, maxConcurrency: slow.maxConcurrency };
  const slowOnes = await stage.createProjects(Array.from({ length: slow.projects }, () => wish));
  const play = { stage, stub, projects: others };
  for (let round = -warmUps; round < 0; round++) await capacity(bench, play, "warming up");
  const before = await capacities(bench, play, "without the backlog");
  await queue(bench, stage, slowOnes);
  const arriving = await capacity(bench, play, "while the backlog is read");
  const readMs = await msOf(() => readAll(bench, stage));
  const held = await hold(bench, stage);
  const after = await capacities(bench, play, "with the backlog");
  const requested = [arriving, ...after].flatMap(({ refreshes }) => refreshes);
  const peaks = serviceNames.map((name) => [name, peakOf(stage, name)] as const);
  const { paths } = await stub.takeFigures();
  const fast = paths.filter((path) => path.startsWith("/fast/"));
  await stage.check(bench, requested.slice(-other.projects), { paths: fast, bodyBytes });
  const speeds = (all: readonly Burst[]) => all.map(({ perSecond }) => perSecond);
  return {
    figures: [
      ...peaks.map(([name, bytes]) => ({
        name: `peak of ${name}`,
        direction: "at most" as const,
        goal: 300,
        unit: "MiB",
        samples: [bytes / mebibyte],
      })),
      ...held.map(({ name, growth }) => ({
        name: `growth of ${name}`,
        direction: "at most" as const,
        goal: 1.1,
        samples: [growth],
      })),
      {
        name: "capacity with the backlog, of without",
        direction: "at least",
        goal: 0.95,
        samples: speeds(after).map((value) => value / median(speeds(before))),
      },
    ],
    usage: {},
    notes: [
      `${paths.length - fast.length} of the ${queuedCount} slow tokens were called while this was measured`,
      `tokens a second of the others: without ${speeds(before).map(Math.round).join(", ")}; with ${speeds(after).map(Math.round).join(", ")}`,
      `not judged: ${Math.round(arriving.perSecond)} tokens a second of the others while the backlog was read for the first time, which took until ${Math.round(readMs / 1_000)} s after they had ended`,
      "the sides are not alternated: a backlog cannot be taken away again",
    ],
    voidReason: stub.saturation,
  };
}

function peakOf(stage: Stage, name: (typeof serviceNames)[number]): number {
  return readUsage(stage.system.service(name).pid)?.peakBytes ?? 0;
}

interface Play {
  readonly stage: Stage;
  readonly stub: MetadataStub;
  readonly projects: readonly BenchProject[];
}

interface Burst {
  readonly perSecond: number;
  readonly refreshes: readonly Requested[];
}

async function capacities(bench: Bench, play: Play, what: string): Promise<Burst[]> {
  const bursts: Burst[] = [];
  for (let round = 1; round <= bench.rounds; round++) {
    bursts.push(await capacity(bench, play, `round ${round} of ${bench.rounds}, ${what}`));
  }
  return bursts;
}

async function capacity(bench: Bench, { stage, stub, projects }: Play, what: string): Promise<Burst> {
  bench.doing(what);
  const posts = await Promise.all(projects.map((project) => stage.prepare(project, stage.freshTokenIds(other.tokensOfEach))));
  return stub.watch(async () => {
    const begin = performance.now();
    const refreshes = await Promise.all(posts.map((post) => post()));
    const ms = (await stage.completed(bench, refreshes)) - begin;
    return { perSecond: (projects.length * other.tokensOfEach * 1_000) / ms, refreshes };
  });
}

async function msOf(work: () => Promise<void>): Promise<number> {
  const begin = performance.now();
  await work();
  return performance.now() - begin;
}

/** Resolves when every slow token is a record of token.requested. */
async function queue(bench: Bench, stage: Stage, projects: readonly BenchProject[]): Promise<void> {
  const { env, topics } = stage.system.environment;
  const ends = await bench.own(TopicEnds.open(env, topics.tokenRequested.name), (opened) => opened.close());
  const wanted = (await ends.total()) + queuedCount;
  let done = 0;
  const upcoming = Array.from({ length: slow.refreshesOfEach }, () => projects)
    .flat()
    .values();
  const post = async () => {
    for (const project of upcoming) {
      await stage.request(project, stage.freshTokenIds(slow.tokensOfEach));
      done += 1;
      bench.doing(`requesting slow refreshes, ${done} of ${slow.projects * slow.refreshesOfEach}`);
    }
  };
  await stage.unlessServiceEnds(Promise.all(Array.from({ length: postsAtOnce }, post)));
  for (let total = 0; total < wanted; await sleep(lookMs, undefined, { signal: bench.signal })) {
    total = await stage.unlessServiceEnds(ends.total());
    bench.doing(`splitting the slow refreshes, ${Math.max(0, wanted - total)} tokens left`);
  }
}

/** How the memory of each service goes while nothing new comes: the median of the last third over that of the first. */
async function hold(bench: Bench, stage: Stage): Promise<{ name: string; growth: number }[]> {
  const looks = serviceNames.map((name) => ({ name, bytes: [] as number[] }));
  for (let leftMs = holdMs; leftMs > 0; leftMs -= lookMs) {
    bench.doing(`watching the memory of the services, ${Math.round(leftMs / 1_000)} s left`);
    for (const { name, bytes } of looks) bytes.push(readUsage(stage.system.service(name).pid)?.residentBytes ?? 0);
    await stage.unlessServiceEnds(sleep(lookMs, undefined, { signal: bench.signal }));
  }
  return looks.map(({ name, bytes }) => {
    const third = Math.ceil(bytes.length / 3);
    return { name, growth: median(bytes.slice(-third)) / median(bytes.slice(0, third)) };
  });
}
