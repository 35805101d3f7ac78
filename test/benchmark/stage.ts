import { randomBytes } from "node:crypto";
import { type ServiceName, serviceNames } from "../../deploy/development/service-process.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import { OperatorClient, OwnerClient } from "../support/clients.ts";
import { Ledger } from "../support/ledger.ts";
import type { ApiCall, MetadataApi } from "../support/metadata-api.ts";
import { TestSystem, tokenIdsFrom } from "../support/system.ts";
import { createWallet } from "../support/wallet.ts";
import { ArrivalWatch } from "./arrivals.ts";
import type { Bench } from "./bench.ts";
import { serverProcesses } from "./measure/machine.ts";
import type { WatchedProcess } from "./measure/process-usage.ts";
import { sampleBody } from "./programs/sample-body.ts";

/** As in production, and not the short ones of the tests: each heartbeat is work. */
const settings = {
  LOG_LEVEL: "info",
  SESSION_TIMEOUT_MS: "30000",
  REBALANCE_TIMEOUT_MS: "60000",
  HEARTBEAT_INTERVAL_MS: "3000",
  KAFKA_REQUEST_TIMEOUT_MS: "8000",
  REFRESHES_PER_HOUR: "1000000",
};

/** A project of one collection whose tokens all exist. */
export interface BenchProject {
  readonly projectId: number;
  readonly collection: string;
  readonly owner: OwnerClient;
  /** Its `metadata_api_url`. */
  readonly url: string;
}

export interface ProjectWish {
  readonly url: string;
  readonly maxConcurrency?: number;
  readonly maxRequestsPerSecond?: number;
}

/** A refresh that was requested: what is needed to check it. */
export interface Requested {
  readonly project: BenchProject;
  readonly refreshId: string;
  readonly tokenIds: readonly string[];
}

interface StageParts {
  readonly system: TestSystem;
  readonly environment: Readonly<Record<string, string>>;
  readonly completions: ArrivalWatch;
  readonly servers: readonly WatchedProcess[];
}

/** The five services in an environment of their own, and what a row does with them. */
export class Stage {
  readonly system: TestSystem;
  /** Of refresh.completed, by refresh id. */
  readonly completions: ArrivalWatch;
  /** For further instances of a service. */
  readonly environment: Readonly<Record<string, string>>;
  readonly #servers: readonly WatchedProcess[];
  #nextTokenId = 1;

  static async open(bench: Bench, extra: Readonly<Record<string, string>> = {}): Promise<Stage> {
    bench.doing("starting the services");
    const starting = TestSystem.start("bench", { settings: { ...settings, ...extra } });
    const system = await bench.own(starting, (started) => started.close());
    const { env, topics } = system.environment;
    const completions = await bench.own(ArrivalWatch.start(env, topics.refreshCompleted), (watch) => watch.close());
    const environment = { ...env, ...settings, ...extra };
    return new Stage({ system, environment, completions, servers: await serverProcesses() });
  }

  private constructor({ system, environment, completions, servers }: StageParts) {
    this.system = system;
    this.environment = environment;
    this.completions = completions;
    this.#servers = servers;
  }

  /** Services and servers, by name. */
  get processes(): WatchedProcess[] {
    const services = serviceNames.map((name: ServiceName) => ({ name, pid: this.system.service(name).pid }));
    return [
      ...services,
      ...this.#servers.map(({ name, pid }) => ({ name: name === "registry" ? "schema registry" : name, pid })),
    ];
  }

  /**
   * One project for each wish, spread over the partitions: the i-th one's id falls on partition i mod 12 of the fetch topics, its
   * collection's address on partition i mod 12 of token.outcome. Ids come in a row, so those that fall elsewhere stay unused.
   */
  async createProjects(wishes: readonly ProjectWish[]): Promise<BenchProject[]> {
    const operator = new OperatorClient(this.system.registryUrl);
    const { tokenRequested, tokenOutcome } = this.system.environment.topics;
    const open = new Set(wishes.keys());
    const projects: BenchProject[] = [];
    while (open.size > 0) {
      const wallet = createWallet();
      const projectId = await operator.createProject({ name: "benchmark", owner_address: wallet.address });
      const partition = partitionOf(String(projectId), tokenRequested.partitions);
      const index = [...open].find((candidate) => candidate % tokenRequested.partitions === partition);
      const wish = wishes[index ?? -1];
      if (index === undefined || wish === undefined) continue;
      open.delete(index);
      const collection = collectionOn(index % tokenOutcome.partitions, tokenOutcome.partitions);
      await operator.createCollection(projectId, { collection_address: collection, ...registration(wish) });
      projects[index] = { projectId, collection, owner: new OwnerClient(this.system.ingressUrl, wallet), url: wish.url };
    }
    return projects;
  }

  /** Token ids that were never used before in this environment: every content is new, every row is written. */
  freshTokenIds(count: number): string[] {
    const ids = tokenIdsFrom(this.#nextTokenId, count);
    this.#nextTokenId += count;
    return ids;
  }

  async request(project: BenchProject, tokenIds: readonly string[]): Promise<Requested> {
    const post = await this.prepare(project, tokenIds);
    return post();
  }

  /** Signs and writes down the request: what an owner does before the POST is not measured. */
  async prepare(project: BenchProject, tokenIds: readonly string[]): Promise<() => Promise<Requested>> {
    const headers = { ...(await project.owner.wallet.headers()), "content-type": "application/json" };
    const body = JSON.stringify({ collection_address: project.collection, token_ids: tokenIds });
    return async () => {
      const answer = await fetch(`${this.system.ingressUrl}/v1/metadata-refreshes`, { method: "POST", headers, body });
      const text = await answer.text();
      if (answer.status !== 202) throw new Error(`the POST of a refresh was answered ${answer.status}: ${text}`);
      return { project, refreshId: (JSON.parse(text) as { refresh_id: string }).refresh_id, tokenIds };
    };
  }

  /** Resolves with the arrival of the last completion, on the clock of `performance.now()`. */
  async completed(bench: Bench, refreshes: readonly Requested[], withinMs = 120_000): Promise<number> {
    const keys = refreshes.map(({ refreshId }) => refreshId);
    const wait = { withinMs, signal: bench.signal, explain: () => this.system.lastWords() };
    return this.unlessServiceEnds(this.completions.allOf(keys, wait));
  }

  /** What waits for a service that has crashed need not wait for its time-out. */
  unlessServiceEnds<T>(work: Promise<T>): Promise<T> {
    const ends = serviceNames.map(async (name): Promise<never> => {
      await this.system.service(name).exited;
      throw new Error(`${name} ended\n${this.system.service(name).output.slice(-15).join("\n")}`);
    });
    return Promise.race([work, ...ends]);
  }

  /** Holds every refresh against the guarantees, from the topics' beginning: README, Guarantees. Not while anything is measured. */
  async check(
    bench: Bench,
    refreshes: readonly Requested[],
    check: { paths: readonly string[]; bodyBytes: number },
  ): Promise<void> {
    const ledger = await bench.own(Ledger.open(this.system.environment), (opened) => opened.close());
    const expected = new Set(refreshes.flatMap(({ project, tokenIds }) => tokenIds.map((id) => `${project.collection}:${id}`)));
    await ledger.states.until("every token", (records) => countOf(records, expected) === expected.size, {
      withinMs: 120_000,
      everyMs: 500,
    });
    const calls = callsByToken(check.paths);
    for (const [index, { project, refreshId, tokenIds }] of refreshes.entries()) {
      bench.doing(`checking refresh ${index + 1} of ${refreshes.length}`);
      const api = recordedApi(tokenIds, calls, check.bodyBytes);
      await ledger.check({ project: { ...project, api }, refreshId, tokenIds });
    }
  }
}

function countOf(records: readonly { readonly key: string }[], expected: ReadonlySet<string>): number {
  return new Set(records.map(({ key }) => key).filter((key) => expected.has(key))).size;
}

function registration({ url, maxConcurrency, maxRequestsPerSecond }: ProjectWish) {
  return {
    metadata_api_url: url,
    token_policy: "open" as const,
    ...(maxConcurrency === undefined ? {} : { max_concurrency: maxConcurrency }),
    ...(maxRequestsPerSecond === undefined ? {} : { max_requests_per_second: maxRequestsPerSecond }),
  };
}

function collectionOn(partition: number, partitionCount: number): string {
  for (;;) {
    const address = `0x${randomBytes(20).toString("hex")}`;
    if (partitionOf(address, partitionCount) === partition) return address;
  }
}

/** How often each token was called; a stage never uses a token id twice. */
function callsByToken(paths: readonly string[]): Map<string, number> {
  const calls = new Map<string, number>();
  for (const path of paths) {
    const tokenId = path.slice(path.lastIndexOf("/") + 1);
    calls.set(tokenId, (calls.get(tokenId) ?? 0) + 1);
  }
  return calls;
}

/** The stub's log of the tokens of one refresh, as the ledger reads a Metadata API. */
function recordedApi(tokenIds: readonly string[], counts: ReadonlyMap<string, number>, bodyBytes: number): MetadataApi {
  const calls = tokenIds.flatMap((tokenId) => Array.from({ length: counts.get(tokenId) ?? 0 }, () => callOf(tokenId)));
  return {
    url: "",
    port: 0,
    calls,
    maxConcurrent: 0,
    callsOf: (tokenId) => calls.filter((call) => call.tokenId === tokenId),
    script: () => undefined,
    otherwise: () => undefined,
    metadataOf: (tokenId) => sampleBody(tokenId, bodyBytes),
    close: async () => undefined,
  };
}

function callOf(tokenId: string): ApiCall {
  const times = { wallMs: 0, monotonicMs: 0, answeredMonotonicMs: 0, endedMonotonicMs: 0 };
  return { tokenId, path: tokenId, headers: {}, concurrent: 0, status: 200, ...times };
}
