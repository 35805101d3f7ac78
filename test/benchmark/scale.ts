import { type ServiceProcess, startService } from "../../deploy/development/service-process.ts";
import type { Bench, Row } from "./bench.ts";
import type { RowResult } from "./measure/report.ts";
import { ratios } from "./measure/statistics.ts";
import { MetadataStub } from "./programs/metadata-stub.ts";
import { type BenchProject, type Requested, Stage } from "./stage.ts";

const latencyMs = 200;
/** Calls at once that one instance may make: 320 tokens a second, far below what this machine can do for four of them. */
const concurrencyOfInstance = 64;
const projectCount = 12;
/** For each instance, so that every step takes as long: 3000 tokens at 320 a second. */
const tokensOfProject = 250;
const bodyBytes = 1_024;
const steps = [1, 2, 4] as const;

/** More instances call more: partitions and projects are spread, and nothing else holds them back. */
export const row: Row = {
  name: "scale",
  title: `tokens a second of ${steps.join(", ")} fetchers with ${concurrencyOfInstance} calls at once each, ${projectCount} projects on as many partitions, API latency ${latencyMs} ms, as a share of linear`,
  run: measure,
};

async function measure(bench: Bench): Promise<RowResult> {
  const stage = await Stage.open(bench, { FETCH_CONCURRENCY: String(concurrencyOfInstance) });
  const stub = await bench.own(MetadataStub.start({ cpu: 0 }), (started) => started.stop());
  const url = await stub.profile("slow", { latencyMs, bodyBytes });
  const wishes = Array.from({ length: projectCount }, () => ({ url, maxConcurrency: concurrencyOfInstance }));
  const projects = await stage.createProjects(wishes);
  const fetchers = new Fetchers(bench, stage);
  const speeds = new Map<number, number[]>(steps.map((count) => [count, []]));
  const last: Requested[] = [];
  for (let round = -1; round < bench.rounds; round++) {
    for (const count of steps) {
      bench.turn(`${count} fetchers`, round);
      await fetchers.be(count);
      // The first refreshes after a join find new members whose code is cold.
      await refreshAll(bench, { stage, projects, tokensOfEach: 50 * count });
      if (round < 0) continue;
      const { refreshes, perSecond } = await stub.watch(() =>
        refreshAll(bench, { stage, projects, tokensOfEach: tokensOfProject * count }),
      );
      speeds.get(count)?.push(perSecond);
      last.splice(0, last.length, ...refreshes);
    }
  }
  const figures = await stub.takeFigures();
  stub.judgeLateness(figures);
  await stage.check(bench, last, { paths: figures.paths, bodyBytes });
  const alone = speeds.get(1) ?? [];
  return {
    figures: steps.slice(1).map((count) => ({
      name: `${count} fetchers, of linear`,
      direction: "at least",
      goal: 0.9,
      samples: ratios(speeds.get(count) ?? [], alone).map((gain) => gain / count),
    })),
    usage: {},
    notes: [...speeds].map(
      ([count, values]) =>
        `${count} fetchers: ${values.map(Math.round).join(", ")} tokens a second; the ceiling is ${(count * concurrencyOfInstance * 1_000) / latencyMs}`,
    ),
    voidReason: stub.saturation,
  };
}

/** The stage's own fetcher and as many more as are wanted. */
class Fetchers {
  readonly #bench: Bench;
  readonly #stage: Stage;
  readonly #more: ServiceProcess[] = [];

  constructor(bench: Bench, stage: Stage) {
    this.#bench = bench;
    this.#stage = stage;
  }

  /** Resolves when all are members of the group and have their partitions. */
  async be(count: number): Promise<void> {
    const leaving = this.#more.splice(count - 1);
    await Promise.all(leaving.map((service) => service.stop()));
    while (this.#more.length < count - 1) this.#more.push(await this.#start());
    const all = [this.#stage.system.service("fetcher"), ...this.#more];
    await Promise.all(all.map((service) => service.ready()));
  }

  async #start(): Promise<ServiceProcess> {
    const service = startService("fetcher", { environment: this.#stage.environment });
    return this.#bench.own(
      service.ready().then(() => service),
      () => service.stop(),
    );
  }
}

interface Play {
  readonly stage: Stage;
  readonly projects: readonly BenchProject[];
  readonly tokensOfEach: number;
}

async function refreshAll(bench: Bench, { stage, projects, tokensOfEach }: Play) {
  const posts = await Promise.all(projects.map((project) => stage.prepare(project, stage.freshTokenIds(tokensOfEach))));
  const begin = performance.now();
  const refreshes = await Promise.all(posts.map((post) => post()));
  const ms = (await stage.completed(bench, refreshes)) - begin;
  return { refreshes, perSecond: (projects.length * tokensOfEach * 1_000) / ms };
}
