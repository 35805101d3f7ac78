import { randomBytes } from "node:crypto";
import { adminToken } from "../../deploy/development/environment.ts";
import {
  type Exit,
  type ServiceName,
  type ServiceProcess,
  serviceNames,
  startService,
} from "../../deploy/development/service-process.ts";
import { OperatorClient, OwnerClient, type RefreshView } from "./clients.ts";
import { createEnvironment, type TestEnvironment } from "./environment.ts";
import { LogScan } from "./log-scan.ts";
import { type MetadataApi, startMetadataApi } from "./metadata-api.ts";
import { type WaitOptions, waitFor } from "./wait-for.ts";
import { createWallet } from "./wallet.ts";

/** A project with one collection whose Metadata API is simulated. */
export interface TestProject {
  readonly projectId: number;
  readonly collection: string;
  readonly owner: OwnerClient;
  readonly api: MetadataApi;
}

export interface ProjectOptions {
  readonly tokenIds?: readonly string[];
  readonly api?: MetadataApi;
  readonly maxConcurrency?: number;
}

export interface SystemOptions {
  /** Shorter delay tiers: `retry-2s=100,retry-10s=300`. */
  readonly delays?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

/** What keyed projects of a test may ask of ingress in a second. */
const keyedPerSecond = 10_000;

/**
 * All five services as processes, in an environment of their own. Everything that they log is read: `close` throws when a secret
 * was among it.
 */
export class TestSystem {
  readonly environment: TestEnvironment;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #services = new Map<ServiceName, ServiceProcess>();
  readonly #httpPorts = new Map<ServiceName, string>();
  readonly #apis: MetadataApi[] = [];
  readonly #logs = new LogScan();
  #projectCount = 0;

  static async start(name: string, { delays = "", settings = {} }: SystemOptions = {}): Promise<TestSystem> {
    const system = new TestSystem(await createEnvironment(name, { delays }), settings);
    try {
      await Promise.all(serviceNames.map((service) => system.start(service)));
    } catch (error) {
      await system.close();
      throw error;
    }
    return system;
  }

  private constructor(environment: TestEnvironment, settings: Readonly<Record<string, string>>) {
    this.environment = environment;
    this.#settings = settings;
    this.#logs.used("the admin token", adminToken);
  }

  get ingressUrl(): string {
    return `http://127.0.0.1:${this.#httpPorts.get("ingress")}`;
  }

  get registryUrl(): string {
    return `http://127.0.0.1:${this.#httpPorts.get("registry")}`;
  }

  service(name: ServiceName): ServiceProcess {
    const service = this.#services.get(name);
    if (service === undefined) throw new Error(`${name} was not started`);
    return service;
  }

  /** Starts the service, after its end on the HTTP port it had before, and waits until it is ready. */
  async start(name: ServiceName): Promise<void> {
    const service = startService(name, {
      environment: {
        ...this.environment.env,
        // Tests look more often than owners should.
        REQUESTS_PER_SECOND_PER_IP: "100000",
        HTTP_PORT: this.#httpPorts.get(name) ?? "0",
        ...this.#settings,
      },
      onLine: (line) => this.#logs.take(name, line),
    });
    this.#services.set(name, service);
    await service.ready();
    if (name !== "ingress" && name !== "registry") return;
    // Its log comes through a pipe, and may be behind its readiness.
    const port = await waitFor(
      `the port of ${name}`,
      () => service.port("http.listening"),
      (seen) => seen !== undefined,
    );
    this.#httpPorts.set(name, String(port));
  }

  /** kill -9, and up again. */
  async killAndRestart(name: ServiceName): Promise<void> {
    const service = this.service(name);
    service.kill("SIGKILL");
    await service.exited;
    await this.start(name);
  }

  /** A graceful stop, and up again. Returns how it ended. */
  async stopAndRestart(name: ServiceName): Promise<Exit> {
    const exit = await this.service(name).stop();
    await this.start(name);
    return exit;
  }

  async createProject({ tokenIds, api, maxConcurrency }: ProjectOptions = {}): Promise<TestProject> {
    const wallet = createWallet();
    const operator = new OperatorClient(this.registryUrl, adminToken);
    const collection = `0x${randomBytes(20).toString("hex")}`;
    const usedApi = api ?? (await this.#startApi());
    const projectId = await operator.createProject({ name: "a test's project", owner_address: wallet.address });
    await operator.createCollection(projectId, {
      collection_address: collection,
      metadata_api_url: usedApi.url,
      token_policy: tokenIds === undefined ? "open" : "registered",
      ...(maxConcurrency === undefined ? {} : { max_concurrency: maxConcurrency }),
    });
    if (tokenIds !== undefined) await operator.registerTokens(collection, tokenIds);
    this.#logs.used("a private key", wallet.privateKey.slice(2));
    const owner = new OwnerClient(this.ingressUrl, wallet, await this.#everySecondKeyed(operator, projectId));
    return { projectId, collection, owner, api: usedApi };
  }

  /** Requests a refresh and returns its id. */
  async refresh({ owner, collection }: TestProject, tokenIds: readonly string[]): Promise<string> {
    return (await owner.requestRefresh(collection, tokenIds)).body.refresh_id;
  }

  /** Waits until the owner sees it completed. A failure shows the last words of every service. */
  async completed({ owner }: TestProject, refreshId: string, options: WaitOptions = {}): Promise<RefreshView> {
    const done = (refresh: RefreshView) => refresh.status === "completed";
    try {
      return await waitFor(`refresh ${refreshId}`, () => owner.getRefresh(refreshId), done, {
        withinMs: 180_000,
        everyMs: 50,
        ...options,
      });
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\n${this.lastWords()}`);
    }
  }

  lastWords(): string {
    const words = [...this.#services.values()].map(({ name, output }) => `--- ${name}\n${output.slice(-15).join("\n")}`);
    return words.join("\n");
  }

  async close(): Promise<void> {
    await Promise.all([...this.#services.values()].map((service) => service.stop()));
    await Promise.all(this.#apis.map((api) => api.close()));
    await this.environment.close();
    const leaks = this.#logs.findings();
    if (leaks.length > 0) throw new Error(`I17: no secret in a log\n${leaks.join("\n")}`);
  }

  /** An API key is a secret that half of the owners have. */
  async #everySecondKeyed(operator: OperatorClient, projectId: number): Promise<{ apiKey?: string }> {
    this.#projectCount += 1;
    if (this.#projectCount % 2 === 1) return {};
    const apiKey = await operator.createApiKey(projectId, { name: "a test's key", requests_per_second: keyedPerSecond });
    this.#logs.used("an API key", apiKey);
    return { apiKey };
  }

  async #startApi(): Promise<MetadataApi> {
    const api = await startMetadataApi();
    this.#apis.push(api);
    return api;
  }
}

/** `count` token ids from `first` on. */
export function tokenIdsFrom(first: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(first + index));
}
