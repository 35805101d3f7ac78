import type { SettingsChange } from "../support/metadata-api/settings.ts";
import type { LoadOptions } from "./load.ts";
import type { ScenarioResult } from "./run.ts";
import { soakFaults } from "./scenarios/soak-faults.ts";
import { Stage, shortestDelayMs } from "./stage.ts";
import type { Finding } from "./verify/finding.ts";
import { type Counts, type Verified, verify } from "./verify/verify.ts";
import { type Course, VitalsWatch } from "./vitals.ts";
import { World, type WorldOptions } from "./world.ts";

export interface SoakOptions extends WorldOptions {
  readonly minutes: number;
}

const share = 0.6;
/** Well nearly always: an API that refuses one call of twenty would be the limit, and not this machine. */
const soakApi: SettingsChange = {
  latency: { kind: "range", fromMs: 40, toMs: 90 },
  mix: { "404": 0.02, "503": 0.002, reset: 0.002 },
  faultyCalls: 1,
};
const mostTokens = 200;
const owners = 6;
/** Of a minute; the rest is for completing and checking, and counts as load of the next. */
const loadedSeconds = 50;
const calibrationRefreshes = 80;
/** A process at work swings by some dozens of MiB: a leak that matters is more than that within the hour. */
const flat = { factor: 1.25, bytes: 48 * 1_048_576, handles: 24 };
/** V8 takes minutes to find its size. */
const fewestMinutes = 10;
const mebibytes = (bytes: number) => Math.round(bytes / 1_048_576);

/**
 * Two instances of each service under about 60 % of the load that this machine can do, and a random fault every minute. Each minute is
 * verified for itself. The first instances are never ended, and their memory and handles must stay flat: README, Guarantees, I18.
 */
export async function soak(options: SoakOptions): Promise<ScenarioResult> {
  const beginMs = performance.now();
  const done: { readonly world: World; readonly verified: Verified }[] = [];
  const measures: string[] = [];
  let problem: string | null = null;
  let vitals: VitalsWatch | undefined;
  let stage: Stage | undefined;
  try {
    options.tell("starting the services");
    stage = await Stage.open({});
    await Promise.all(
      (["ingress", "splitter", "fetcher", "aggregator"] as const).map((service) => stage?.fleet.start(service, { slot: 2 })),
    );
    vitals = new VitalsWatch(stage.fleet);
    const calibration = await carryOut(stage, { ...options, load: { refreshes: calibrationRefreshes, pauseMs: 0 } });
    const tokensPerSecond = share * calibration.tokensPerSecond;
    measures.push(
      `this machine does ${Math.round(calibration.tokensPerSecond)} tokens a second; the load is ${Math.round(tokensPerSecond)}`,
    );
    vitals.start();
    for (let minute = 1; minute <= options.minutes; minute += 1) {
      const tell = (what: string) => options.tell(`minute ${minute} of ${options.minutes}, ${what}`);
      done.push(await carryOut(stage, { ...options, tell, seed: options.seed + minute, load: steady(tokensPerSecond) }, true));
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    problem = `${error instanceof Error ? error.stack : error}\n${stage?.fleet.lastWords() ?? ""}`;
  } finally {
    await vitals?.stop();
    await stage?.close();
  }
  const courses = vitals?.courses() ?? [];
  const findings = [...merged(done.flatMap(({ verified }) => verified.findings)), ...flatness(courses, options.minutes)];
  return {
    name: "soak",
    title: `${options.minutes} minutes at ${share * 100} % of the load, with a fault every minute`,
    passed: problem === null && findings.every(({ wrong }) => wrong.length === 0),
    problem,
    findings,
    counts: sum(done.map(({ verified }) => verified.counts)),
    faults: done.flatMap(({ world }) => world.account.faults),
    measures: [...measures, ...courses.filter(isVeteran).map(courseText)],
    seconds: (performance.now() - beginMs) / 1_000,
  };
}

function steady(tokensPerSecond: number): Partial<LoadOptions> {
  const refreshesPerSecond = tokensPerSecond / (mostTokens / 2);
  return { refreshes: Math.ceil(loadedSeconds * refreshesPerSecond), pauseMs: (1_000 * owners) / refreshesPerSecond };
}

interface Stretch extends WorldOptions {
  readonly load: Partial<LoadOptions>;
}

/** A stretch of load, with a fault in it or without, until every refresh is complete and checked. */
async function carryOut(stage: Stage, { load, ...options }: Stretch, withFault = false) {
  const world = new World(stage, options);
  try {
    const begun = await world.startLoad({ mostTokens, owners, api: soakApi, ...load });
    const beginMs = performance.now();
    if (withFault) {
      await world.sleep(world.draw(2_000, 20_000));
      await soakFaults[world.draw(0, soakFaults.length - 1)]?.run(world);
    }
    await begun.posted;
    await world.settle();
    const seconds = (performance.now() - beginMs) / 1_000;
    const verified = await verify(world, { shortestDelayMs });
    return { world, verified, tokensPerSecond: verified.counts.tokens / seconds };
  } finally {
    await world.close();
    stage.forget(new Set(world.account.accepted.map(({ refreshId }) => refreshId)));
  }
}

/** One finding for each guarantee, of all minutes. */
function merged(findings: readonly Finding[]): Finding[] {
  return [...Map.groupBy(findings, ({ invariant }) => invariant).values()].flatMap((list) => {
    const [first] = list;
    if (first === undefined) return [];
    const wrong = list.flatMap((finding) => finding.wrong);
    const failed = list.filter((finding) => finding.wrong.length > 0).length;
    return { ...first, expected: `${list.length} minutes in which it holds`, found: `${list.length - failed}`, wrong };
  });
}

function sum(counts: readonly Counts[]): Counts {
  const total = (read: (one: Counts) => number) => counts.reduce((all, one) => all + read(one), 0);
  return {
    refreshes: total(({ refreshes }) => refreshes),
    tokens: total(({ tokens }) => tokens),
    calls: total(({ calls }) => calls),
    repeatedCalls: total(({ repeatedCalls }) => repeatedCalls),
    faults: total(({ faults }) => faults),
  };
}

const isVeteran = ({ process }: Course): boolean => process.includes("#1 ");

/** None for a soak that is too short to judge: its courses are among the measures. */
function flatness(courses: readonly Course[], minutes: number): Finding[] {
  if (minutes < fewestMinutes) return [];
  const veterans = courses.filter(isVeteran);
  const wrong = veterans.flatMap((course) => {
    const { early, late } = course;
    const grows = late.residentBytes > Math.max(flat.factor * early.residentBytes, early.residentBytes + flat.bytes);
    return grows || late.handles > early.handles + flat.handles ? courseText(course) : [];
  });
  const expected = `${veterans.length} processes that do not grow`;
  const found = `${veterans.length - wrong.length}`;
  return [{ invariant: "I18", promise: "memory and handles stay flat", expected, found, wrong }];
}

function courseText({ process, early, late, peakBytes }: Course): string {
  return (
    `${process}: ${mebibytes(early.residentBytes)} → ${mebibytes(late.residentBytes)} MiB (peak ${mebibytes(peakBytes)}), ` +
    `${early.handles} → ${late.handles} handles, event loop p99 ${early.loopLagMs.toFixed(0)} → ${late.loopLagMs.toFixed(0)} ms`
  );
}
