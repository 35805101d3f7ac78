import { setTimeout as sleep } from "node:timers/promises";
import { serviceNames } from "../../deploy/development/service-process.ts";
import { type SimulatorProcess, startSimulator } from "../support/metadata-api/client.ts";
import type { Settings } from "../support/metadata-api/settings.ts";
import { waitFor } from "../support/wait-for.ts";
import type { Bench, Row } from "./bench.ts";
import { figuresOf, type Stretch, type StretchFigures } from "./hidden-limit-convergence.ts";
import { storedAll } from "./isolation-stage.ts";
import type { RowResult } from "./measure/report.ts";
import type { Figure } from "./measure/verdict.ts";
import { type Requested, Stage } from "./stage.ts";

/** A limit that the API keeps to itself, and a quarter of it. */
interface HiddenLimit {
  readonly name: string;
  readonly latencyMs: number;
  readonly full: Settings["limit"];
  readonly quarter: Settings["limit"];
}

/** Both let 400 calls through a second, and 100. */
const limits: readonly HiddenLimit[] = [
  {
    name: "per second",
    latencyMs: 20,
    full: { kind: "sliding_window", perSecond: 400 },
    quarter: { kind: "sliding_window", perSecond: 100 },
  },
  { name: "in flight", latencyMs: 100, full: { kind: "in_flight", calls: 40 }, quarter: { kind: "in_flight", calls: 10 } },
];
const fullPerSecond = 400;
const quarterPerSecond = 100;

/** First from nothing, then a quarter, then the whole again; each long enough to converge in time and to be steady for a while. */
const stretches = [
  { name: "at first", limit: "full", perSecond: fullPerSecond, seconds: 40, patienceMs: 30_000 },
  { name: "down", limit: "quarter", perSecond: quarterPerSecond, seconds: 25, patienceMs: 5_000 },
  { name: "up", limit: "full", perSecond: fullPerSecond, seconds: 45, patienceMs: 30_000 },
] as const;

/** Twice what is let through in all that time: the queue never runs dry. */
const refreshCount = 75;
const tokensOfEach = 1_000;

export const row: Row = {
  name: "hidden-limit",
  title: `an API that refuses what is above a limit it tells nobody (${fullPerSecond} a second, by rate or by calls in flight), stepped down to a quarter and up again under a standing queue; retry tiers as in production`,
  run: measure,
};

interface RoundFigures {
  readonly stretches: readonly StretchFigures[];
  readonly failedTokens: number;
}

async function measure(bench: Bench): Promise<RowResult> {
  const figures: Figure[] = [];
  const notes: string[] = [
    "found: from the step to the begin of the first two seconds in which at least 85 % of the limit are answered and at most 115 % are called; steady: from there to the next step",
  ];
  let voidReason: string | undefined;
  for (const limit of limits) {
    const rounds: RoundFigures[] = [];
    for (let round = 1; round <= bench.rounds; round++) {
      const measured = await measureRound(bench, limit, `round ${round} of ${bench.rounds}, ${limit.name}`);
      rounds.push(measured);
      voidReason ??= measured.voidReason;
    }
    figures.push(...judged(limit, rounds));
    notes.push(...stretches.map(({ name }, index) => `${limit.name}, ${name}: ${told(rounds, index)}`));
  }
  return { figures, usage: {}, notes, voidReason };
}

/** A round has an environment of its own: what a scheduler has learned of the API is forgotten, and nothing is left queued. */
async function measureRound(
  bench: Bench,
  limit: HiddenLimit,
  what: string,
): Promise<RoundFigures & { readonly voidReason: string | undefined }> {
  const stage = await Stage.open(bench);
  const starting = startSimulator({
    settings: { latency: { kind: "fixed", ms: limit.latencyMs }, limit: limit.full, bodyBytes: 1_024 },
    logCalls: 500_000,
  });
  const api = await bench.own(starting, (started) => started.close());
  const [project] = await stage.createProjects([{ url: api.url }]);
  if (project === undefined) throw new Error("no project was created");
  bench.doing(`${what}: queueing ${refreshCount * tokensOfEach} tokens`);
  const requested = await Promise.all(
    Array.from({ length: refreshCount }, () => stage.request(project, stage.freshTokenIds(tokensOfEach))),
  );
  const passed = await stepThrough(bench, { api, limit, what });
  const { load } = await api.counts();
  const seen = (await api.calls()).map(({ atMs, refused }) => ({ atMs, refused }));
  await stage.system.service("fetcher").stop();
  await storedAll(bench, stage);
  const failedTokens = await countFailed(requested);
  await Promise.all(serviceNames.map((name) => stage.system.service(name).stop()));
  return {
    stretches: passed.map((stretch, index) => figuresOf(seen, stretch, stretches[index]?.patienceMs ?? 0)),
    failedTokens,
    voidReason: load.cpuShare > 0.9 ? "the simulator used up its processor" : undefined,
  };
}

/** Changes the limit in time. The first stretch begins with the first call. */
async function stepThrough(
  bench: Bench,
  { api, limit, what }: { api: SimulatorProcess; limit: HiddenLimit; what: string },
): Promise<Stretch[]> {
  const passed: Stretch[] = [];
  for (const stretch of stretches) {
    bench.doing(`${what}: ${stretch.perSecond} a second, ${stretch.name}`);
    if (stretch.name !== "at first") await api.change({ limit: limit[stretch.limit] });
    const fromMs = stretch.name === "at first" ? await firstCallMs(bench, api) : Date.now();
    await sleep(stretch.seconds * 1_000, undefined, { signal: bench.signal });
    passed.push({ fromMs, untilMs: Date.now(), perSecond: stretch.perSecond });
  }
  return passed;
}

function firstCallMs(bench: Bench, api: SimulatorProcess): Promise<number> {
  const look = async () => {
    bench.signal.throwIfAborted();
    return (await api.counts()).firstCallAtMs;
  };
  return waitFor("the first call", look, (atMs) => atMs !== null, { withinMs: 60_000 }).then(Number);
}

/** Tokens that had a last attempt and lost it. The others are still waiting: nobody waits for them here. */
async function countFailed(requested: readonly Requested[]): Promise<number> {
  const views = await Promise.all(requested.map(({ project, refreshId }) => project.owner.getRefresh(refreshId)));
  return views.reduce((sum, { summary }) => sum + summary.failed, 0);
}

function judged({ name }: HiddenLimit, rounds: readonly RoundFigures[]): Figure[] {
  const worst = (pick: (figures: StretchFigures) => number, choose: (...values: number[]) => number) =>
    rounds.map((round) => choose(...round.stretches.map(pick)));
  const found = (index: number) => rounds.map((round) => foundSeconds(round.stretches[index]));
  return [
    { name: `${name}: goodput`, direction: "at least", goal: 0.85, samples: worst(({ goodput }) => goodput, Math.min) },
    { name: `${name}: refused`, direction: "at most", goal: 0.05, samples: worst(({ refusedShare }) => refusedShare, Math.max) },
    { name: `${name}: tokens failed`, direction: "at most", goal: 0, samples: rounds.map(({ failedTokens }) => failedTokens) },
    { name: `${name}: found down`, direction: "at most", goal: 5, unit: "s", samples: found(1) },
    { name: `${name}: found up`, direction: "at most", goal: 30, unit: "s", samples: found(2) },
  ];
}

/** Not found counts as found at the end of the stretch. */
function foundSeconds(figures: StretchFigures | undefined, longest = 60): number {
  const ms = figures?.convergedAfterMs;
  return ms === undefined ? longest : ms / 1_000;
}

function told(rounds: readonly RoundFigures[], index: number): string {
  return rounds
    .map(({ stretches: of }) => of[index])
    .map((figures) => {
      const found = figures?.convergedAfterMs === undefined ? "not found" : `found after ${foundSeconds(figures).toFixed(1)} s`;
      return `${found}, steady ${percent(figures?.goodput)} of the limit, ${percent(figures?.refusedShare)} refused`;
    })
    .join("; ");
}

const percent = (share = 0): string => `${(100 * share).toFixed(1)} %`;
