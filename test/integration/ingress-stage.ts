import { randomBytes } from "node:crypto";
import { type Admin, Kafka, logLevel } from "kafkajs";
import { v7 as uuidv7 } from "uuid";
import { parseProvisionSettings, provision } from "../../deploy/provision.ts";
import { writeRefreshRows } from "../../services/common/cassandra/refresh-rows.ts";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import type { Clock } from "../../services/common/clock.ts";
import { createApiKey } from "../../services/common/http/api-key.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { storedAttempts } from "../../services/common/messages/attempt-history.ts";
import type { RefreshRequested, TokenOutcome } from "../../services/common/messages/records.ts";
import { parse } from "../../services/ingress/config.ts";
import { run } from "../../services/ingress/run.ts";
import { OwnerClient } from "../support/clients.ts";
import { createEnvironment, type TestEnvironment } from "../support/environment.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { type ReadRecord, readTopic, type TopicReader } from "../support/topic-reader.ts";
import { waitFor } from "../support/wait-for.ts";
import { createWallet, type Wallet } from "../support/wallet.ts";

/** One ingress in this process. */
export interface Ingress {
  readonly url: string;
  readonly context: TestServiceContext;
  stop(): Promise<void>;
}

/** A project with a collection; tokens do not have to exist for a request. */
export interface StageProject {
  readonly projectId: number;
  readonly collection: string;
  readonly wallet: Wallet;
}

/** The parts around ingress, real ones: an environment of its own, its tables, and everything in `refresh.requested`. */
export class IngressStage {
  readonly environment: TestEnvironment;
  readonly cassandra: Cassandra;
  #requested: TopicReader<RefreshRequested>;
  /** Half past the present hour, and it stays so: no test happens to run into the next one. */
  readonly clock = new SetClock((Math.floor(Date.now() / 3_600_000) + 0.5) * 3_600_000);
  readonly #admin: Admin;
  readonly #ingresses: Ingress[] = [];
  #nextProjectId = 1;

  /** `servers` are settings that lead to other servers than the shared ones; they are provisioned as well. */
  static async open(name: string, servers: Readonly<Record<string, string>> = {}): Promise<IngressStage> {
    const shared = await createEnvironment(name);
    const environment = { ...shared, env: { ...shared.env, ...servers } };
    const { env, topics } = environment;
    const settings = parseProvisionSettings(env);
    if (!settings.ok) throw new Error(settings.problems.join("\n"));
    const { problems } = await provision(settings.config, { logger: createLogger("stage", "silent") });
    if (problems.length > 0) throw new Error(problems.join("\n"));
    const [cassandra, requested] = await Promise.all([
      connectCassandra({
        contactPoints: [env.CASSANDRA_CONTACT_POINTS ?? ""],
        datacenter: env.CASSANDRA_DATACENTER ?? "",
        keyspace: env.CASSANDRA_KEYSPACE ?? "",
        logger: createLogger("stage", "silent"),
      }),
      readTopic<RefreshRequested>(env, topics.refreshRequested.name),
    ]);
    const brokers = (env.KAFKA_BROKERS ?? "").split(",");
    const admin = new Kafka({ brokers, clientId: "stage", logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    return new IngressStage({ environment, cassandra, requested, admin });
  }

  private constructor(
    parts: Pick<IngressStage, "environment" | "cassandra"> & { requested: TopicReader<RefreshRequested>; admin: Admin },
  ) {
    this.environment = parts.environment;
    this.cassandra = parts.cassandra;
    this.#requested = parts.requested;
    this.#admin = parts.admin;
  }

  /** The per-IP limit is out of the way unless the settings bring it back, and wallets need not follow the clock. */
  async ingress(settings: Readonly<Record<string, string>> = {}, clock: Clock = this.clock): Promise<Ingress> {
    const parsed = parse({
      ...this.environment.env,
      HTTP_PORT: "0",
      REQUESTS_PER_SECOND_PER_IP: "100000",
      SIGNATURE_TOLERANCE_SECONDS: "86400",
      ...settings,
    });
    if (!parsed.ok) throw new Error(parsed.problems.join("\n"));
    const context = createServiceContext("ingress", { clock });
    await run(parsed.config, context);
    const { port } = context.logs.find(({ event }) => event === "http.listening") ?? {};
    let stopped: Promise<void> | undefined;
    const stop = () => {
      stopped ??= context.stop();
      return stopped;
    };
    const ingress = { url: `http://127.0.0.1:${port}`, context, stop };
    this.#ingresses.push(ingress);
    return ingress;
  }

  async createProject(options: { wallet?: Wallet; refreshesPerHour?: number } = {}): Promise<StageProject> {
    const projectId = this.#nextProjectId;
    this.#nextProjectId += 1;
    const wallet = options.wallet ?? createWallet();
    await this.cassandra.write(
      "INSERT INTO projects (project_id, name, owner_address, refreshes_per_hour, created_at) VALUES (?, ?, ?, ?, ?)",
      [projectId, `project ${projectId}`, wallet.address, options.refreshesPerHour ?? 0, 1],
    );
    await this.#index(wallet, projectId);
    return { projectId, collection: await this.createCollection(projectId), wallet };
  }

  async createCollection(projectId: number): Promise<string> {
    const collection = `0x${randomBytes(20).toString("hex")}`;
    const query = `INSERT INTO collections (collection_address, project_id, metadata_api_url, token_policy, max_concurrency,
      max_requests_per_second, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`;
    await this.cassandra.write(query, [collection, projectId, "http://127.0.0.1:1/meta", "open", 7, 0, 1]);
    return collection;
  }

  async changeOwner({ projectId }: StageProject, wallet: Wallet): Promise<void> {
    await this.cassandra.write("UPDATE projects SET owner_address = ? WHERE project_id = ?", [wallet.address, projectId]);
    await this.#index(wallet, projectId);
  }

  async createApiKey(projectId: number, requestsPerSecond: number): Promise<{ apiKey: string; hash: string }> {
    const key = createApiKey(randomBytes(32));
    const query = `INSERT INTO api_keys (key_hash, key_id, project_id, name, requests_per_second, created_at)
      VALUES (?, ?, ?, ?, ?, ?)`;
    await this.cassandra.write(query, [key.hash, key.hash.slice(0, 8), projectId, "a key", requestsPerSecond, 1]);
    return key;
  }

  /** A refresh of three tokens that was requested at a time of the test's choice, in micros. */
  async storeRefresh(project: StageProject, requestedAt: number, collection = project.collection): Promise<string> {
    const record: RefreshRequested = {
      refresh_id: uuidv7({ msecs: requestedAt / 1000 }),
      project_id: project.projectId,
      collection_address: collection,
      token_ids: ["1", "2", "3"],
      requested_at: requestedAt,
      deadline: requestedAt,
      metadata_api_url: "http://127.0.0.1:1",
      token_policy: "open",
      max_concurrency: null,
      max_requests_per_second: null,
    };
    await writeRefreshRows(this.cassandra, record, { retentionSeconds: 90 * 86_400, nowMs: Date.now() });
    return record.refresh_id;
  }

  /** As the aggregator writes it; 0 stands for not completed. */
  storeProgress(refreshId: string, counts: { succeeded: number; failed: number; completedAt: number }): Promise<void> {
    const query = `INSERT INTO refresh_progress (refresh_id, total, done, failed, succeeded_count, unchanged_count, failed_count,
      failed_by_code, completed_at, completed_version) VALUES (?, 3, 0x00, 0x00, ?, 0, ?, {}, ?, 0)`;
    return this.cassandra.write(query, [refreshId, counts.succeeded, counts.failed, counts.completedAt]);
  }

  /** As the aggregator writes it: no status and no body where there was no response. */
  storeError(
    refreshId: string,
    error: { createdAt: number; ordinal: number; status?: number; body?: string; attempts?: TokenOutcome["attempts"] },
  ): Promise<void> {
    const query = `INSERT INTO refresh_errors (refresh_id, created_at, ordinal, token_id, collection_address, url, attempts,
      status_code, response_body, error_code, error_detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
    const { createdAt, ordinal, status, body, attempts } = error;
    const stored = attempts === undefined ? undefined : storedAttempts({ attempts, error_detail: null });
    const place = [refreshId, createdAt, ordinal, String(ordinal), `0x${"ab".repeat(20)}`, `http://127.0.0.1:1/${ordinal}`];
    const timeout = ["unable_to_retrieve_metadata", "timeout"];
    const cause = status === undefined ? timeout : ["invalid_response_status_code", undefined];
    return this.cassandra.write(query, [...place, stored, status, body, ...cause]);
  }

  /** The records of one project's refreshes: all that are in the topic now. */
  async recordsOf(projectId: number): Promise<ReadRecord<RefreshRequested>[]> {
    const { name } = this.environment.topics.refreshRequested;
    // Asked again where a broker has just been started.
    const partitions = await waitFor(
      "the topic's end",
      () => this.#admin.fetchTopicOffsets(name),
      () => true,
    );
    const count = partitions.reduce((sum, { high }) => sum + Number(high), 0);
    await this.#requested.until(`all ${count} records`, (records) => records.length >= count);
    return this.#requested.records.filter(({ value }) => value.project_id === projectId);
  }

  /** After Kafka was away: a consumer of before may not come back. */
  async readAnew(): Promise<void> {
    await this.#requested.close();
    const { env, topics } = this.environment;
    this.#requested = await readTopic<RefreshRequested>(env, topics.refreshRequested.name);
  }

  async close(): Promise<void> {
    await Promise.all(this.#ingresses.map((ingress) => ingress.stop()));
    await this.#requested.close();
    await this.#admin.disconnect();
    await this.cassandra.close();
    await this.environment.close();
  }

  #index(wallet: Wallet, projectId: number): Promise<void> {
    const query = "INSERT INTO projects_by_owner (owner_address, project_id) VALUES (?, ?)";
    return this.cassandra.write(query, [wallet.address, projectId]);
  }
}

export function ownerOf(ingress: Ingress, project: { readonly wallet: Wallet }, apiKey?: string): OwnerClient {
  return new OwnerClient(ingress.url, project.wallet, apiKey === undefined ? {} : { apiKey });
}

export const endpoint = "/v1/metadata-refreshes";

/** The three headers of specification section 8, as numbers. */
export function limitsIn(headers: Headers): { limit: number; remaining: number; reset: number } {
  const value = (name: string) => Number(headers.get(name) ?? Number.NaN);
  return {
    limit: value("x-svc-refreshes-limit"),
    remaining: value("x-svc-remaining-refreshes"),
    reset: value("x-svc-refresh-limit-reset"),
  };
}

/** A clock that the test moves; it stands still in between. */
export class SetClock implements Clock {
  #nowMs: number;
  #elapsedMs = 1_000;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    this.#elapsedMs += ms;
  }
}
