import { setTimeout as sleep } from "node:timers/promises";
import { unlessInterrupted } from "../../deploy/development/interruption.ts";
import type { ServiceName } from "../../deploy/development/service-process.ts";
import type { CrashPoint } from "../../services/common/lifecycle/crash-points.ts";
import { chanceOf, type Random } from "../support/metadata-api/chance.ts";
import type { SettingsChange } from "../support/metadata-api/settings.ts";
import { waitFor } from "../support/wait-for.ts";
import { type AcceptedRefresh, Account, type FaultProject } from "./account.ts";
import { FaultApi } from "./fault-api.ts";
import type { Fleet, Slot } from "./fleet.ts";
import { Load, type LoadOptions, usualLoad } from "./load.ts";
import { createProject, type ProjectWish, postRefresh } from "./owners.ts";
import type { Stage } from "./stage.ts";
import { ApiWatch, CommitWatch, ProgressWatch } from "./watch.ts";

/**
 * An API that is slow enough to be met in the middle of a call, and refuses and fails often enough to be retried. Only a token's first
 * call: a last attempt may wait a minute for its host to have answered well (README, The call to the Metadata API).
 */
export const usualApi: SettingsChange = {
  latency: { kind: "range", fromMs: 40, toMs: 90 },
  mix: { "503": 0.05, "404": 0.02, reset: 0.005 },
  faultyCalls: 1,
};

export interface WorldOptions {
  readonly seed: number;
  /** Shown as progress. */
  readonly tell: (what: string) => void;
  readonly signal?: AbortSignal;
}

/** Nothing has ended for so long: longer than any wait of a service, and than a machine under load may take for one token. */
const stuckAfterMs = 150_000;
const limitOfGreedy = 4;
const postsOfGreedy = 9;

/** What a scenario works with: services to hurt, load to hurt them under, and the account that the verifier goes by. */
export class World {
  readonly account = new Account();
  readonly stage: Stage;
  readonly progress: ProgressWatch;
  readonly commits: CommitWatch;
  readonly apis: FaultApi[] = [];
  readonly probe = new ApiWatch(() => this.apis.map(({ url }) => url));
  readonly projects: FaultProject[] = [];
  readonly #options: WorldOptions;
  readonly #nextTokenId = new Map<FaultProject, number>();
  readonly #loads: Promise<unknown>[] = [];
  #settled: Promise<readonly string[]> | undefined;
  #draws = 0;

  constructor(stage: Stage, options: WorldOptions) {
    this.stage = stage;
    this.#options = options;
    this.progress = new ProgressWatch(this.account);
    this.commits = new CommitWatch(stage.environment.env, stage.topics);
  }

  get seed(): number {
    return this.#options.seed;
  }

  get fleet(): Fleet {
    return this.stage.fleet;
  }

  /** A sequence of its own for each purpose: one draw more here changes nothing there. */
  random(purpose: string): Random {
    return chanceOf(this.seed, purpose, 1);
  }

  /** A whole number from `from` to `to`, another one at each call. */
  draw(from: number, to: number): number {
    this.#draws += 1;
    return from + Math.floor(this.random(`draw ${this.#draws}`)() * (to - from + 1));
  }

  /** What is being done, for the line of progress. */
  tell(what: string): void {
    this.#options.signal?.throwIfAborted();
    this.#options.tell(what);
  }

  /** Waits; ends at once when the run is interrupted. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, this.#options.signal === undefined ? {} : { signal: this.#options.signal });
  }

  /** Enters what was done into the account. `repeats`: how many times a token's calls may come again for it. */
  fault(what: string, { repeats = 0 }: { readonly repeats?: number } = {}): void {
    this.account.faults.push(what);
    this.account.repeats += repeats;
    this.tell(what);
  }

  /** A sentence for the report. */
  measure(what: string): void {
    this.account.measures.push(what);
  }

  async api(settings: SettingsChange = usualApi): Promise<FaultApi> {
    const api = await FaultApi.start({ seed: this.seed, ...settings });
    this.apis.push(api);
    return api;
  }

  /** Its token ids are nobody else's: give it those of `tokenIds`. */
  async project(wish: ProjectWish): Promise<FaultProject> {
    const project = await createProject(this.fleet, wish);
    this.projects.push(project);
    return project;
  }

  /** Fresh ids of a project. */
  tokenIds(project: FaultProject, count: number): readonly string[] {
    const first = this.#nextTokenId.get(project) ?? firstTokenId(this.projects.indexOf(project));
    this.#nextTokenId.set(project, first + count);
    return Array.from({ length: count }, (_, index) => String(first + index));
  }

  /**
   * Begins a load on three projects, one of them with registered tokens of which some are missing, and a fourth that asks for more
   * refreshes than its hour has. Resolves when the first calls are under way.
   */
  async startLoad(options: Partial<LoadOptions> & { readonly api?: SettingsChange } = {}): Promise<Load> {
    const { api: settings = usualApi, ...given } = options;
    const wanted = { ...usualLoad, ...given };
    this.tell("starting the load");
    const api = await this.api(settings);
    const first = firstTokenId(this.projects.length);
    const ids = Array.from({ length: wanted.refreshes * wanted.mostTokens }, (_, index) => first + index);
    const registered = ids.filter((id) => id % 61 !== 0).map(String);
    const projects = [await this.project({ api, registered }), await this.project({ api }), await this.project({ api })];
    const greedy = await this.project({ api, refreshesPerHour: limitOfGreedy });
    return this.begin(projects, wanted, greedy);
  }

  /** The same on given projects. */
  async begin(projects: readonly FaultProject[], options: LoadOptions = usualLoad, greedy?: FaultProject): Promise<Load> {
    const parts = {
      account: this.account,
      projects,
      random: this.random(`load ${this.#loads.length}`),
      ingressUrl: () => this.ingressUrl(),
      tokenIds: (project: FaultProject, count: number) => this.tokenIds(project, count),
    };
    const load = new Load(parts, options);
    this.#loads.push(load.posted);
    if (greedy !== undefined) this.#loads.push(this.#postTooMany(greedy));
    // What is stored changes in the middle: then some tokens are read before, some after, and some twice.
    this.#loads.push(load.accepted(Math.ceil(options.refreshes / 2)).then(() => this.#changeMetadata(projects)));
    for (const work of this.#loads) work.catch(() => undefined);
    this.progress.start(20);
    this.commits.start(300);
    this.probe.start(500);
    await load.accepted(1);
    return load;
  }

  /** Waits until the Metadata APIs have answered so many calls. */
  async calls(count: number): Promise<void> {
    const seen = (): number => {
      for (const { book } of this.apis) book.read();
      return this.apis.reduce((sum, { book }) => sum + book.count, 0);
    };
    await waitFor(`${count} calls`, seen, (calls) => calls >= count, { withinMs: 120_000, everyMs: 5 });
  }

  /** kill -9 at a crash point under load, and up again. The service is given the crash point before, gracefully. */
  async crashUnderLoad(service: ServiceName, point: CrashPoint, nth: number): Promise<void> {
    await this.fleet.replace(service, { crashAt: { point, nth } });
    // Not waited for: an ingress that is gone at its first POST accepts nothing.
    const loading = this.startLoad();
    loading.catch(() => undefined);
    await this.fleet.crashed(service, point);
    this.fault(`${service} killed itself ${point}, time ${nth}`, { repeats: repeatsOf(service) });
    await this.fleet.start(service);
    await loading;
  }

  /** kill -9, by chance and from outside. */
  async kill(service: ServiceName, slot: Slot = {}): Promise<void> {
    await this.fleet.kill(service, slot);
    this.fault(`kill -9 of ${service}`, { repeats: repeatsOf(service) });
  }

  /** SIGTERM. Anything but exit code 0 fails the scenario. */
  async stop(service: ServiceName, slot: Slot = {}): Promise<void> {
    const exit = await this.fleet.stop(service, slot);
    this.fault(`SIGTERM to ${service}`);
    if (exit.code !== 0) throw new Error(`${service} ended with ${JSON.stringify(exit)} after SIGTERM`);
  }

  /** Of the ingresses that run, any. */
  ingressUrl(): string {
    const slots = this.fleet.members.filter(({ service }) => service === "ingress").map(({ slot }) => slot);
    return this.fleet.url("ingress", { slot: slots[this.#options.seed % Math.max(1, slots.length)] ?? 1 });
  }

  /** Waits for every answer and every completion. Returns the refreshes that did not end. */
  settle(): Promise<readonly string[]> {
    this.#settled ??= this.#unlessInterrupted(this.#settle());
    return this.#settled;
  }

  async #settle(): Promise<readonly string[]> {
    this.tell("waiting for every answer");
    await Promise.all(this.#loads);
    await this.stage.requested.caughtUp();
    let fewest = Number.POSITIVE_INFINITY;
    let movedAtMs = performance.now();
    while (performance.now() - movedAtMs < stuckAfterMs) {
      const pending = this.#leftToDo().reduce((sum, request) => sum + this.progress.pendingOf(request), 0);
      if (pending < fewest) movedAtMs = performance.now();
      fewest = Math.min(fewest, pending);
      if (pending === 0) break;
      this.tell(`waiting for ${pending} tokens`);
      await this.sleep(100);
    }
    await Promise.all([this.progress.stop(), this.probe.stop()]);
    await this.commits.look().catch(() => undefined);
    await this.commits.stop();
    return this.#leftToDo().map(({ refreshId }) => refreshId);
  }

  #leftToDo(): AcceptedRefresh[] {
    this.account.adopt(this.stage.requested.records.map(({ value }) => value));
    return this.account.accepted.filter(({ refreshId }) => !this.progress.hasEnded(refreshId));
  }

  #unlessInterrupted<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#options;
    return signal === undefined ? work : unlessInterrupted(signal, work);
  }

  async close(): Promise<void> {
    await Promise.allSettled([this.progress.stop(), this.probe.stop(), this.commits.stop()]);
    await Promise.allSettled(this.apis.map((api) => api.close()));
  }

  async #changeMetadata(projects: readonly FaultProject[]): Promise<void> {
    for (const api of new Set(projects.map(({ api }) => api))) await api.changeMetadata();
  }

  async #postTooMany(project: FaultProject): Promise<void> {
    const posts = Array.from({ length: postsOfGreedy }, async (_, index) => {
      await sleep(index * 40);
      const idempotencyKey = `greedy-${index}`;
      const tokenIds = this.tokenIds(project, 2);
      const url = () => this.ingressUrl();
      const answer = await postRefresh({ project, tokenIds, idempotencyKey, url, withinMs: 120_000 });
      this.account.requests.push({ project, tokenIds, idempotencyKey, answer });
    });
    await Promise.all(posts);
  }
}

/** A fetcher that loses its partitions leaves calls behind that its successor makes again. */
export function repeatsOf(service: ServiceName): number {
  return service === "fetcher" ? 1 : 0;
}

/** Every project has a million of its own. */
function firstTokenId(projectIndex: number): number {
  return (projectIndex + 1) * 1_000_000 + 1;
}
