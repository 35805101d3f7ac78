import { randomBytes, randomUUID } from "node:crypto";
import { writeRefreshRows } from "../../../services/common/cassandra/refresh-rows.ts";
import { type Cassandra, connectCassandra } from "../../../services/common/cassandra/session.ts";
import { microsFromMs } from "../../../services/common/clock.ts";
import { createLogger } from "../../../services/common/logging/logger.ts";
import type { RefreshRequested } from "../../../services/common/messages/records.ts";
import { type Program, startProgram } from "../programs/program.ts";
import { type BullMq, loadBullMq, type Queue, type Worker } from "./bullmq.ts";
import {
  type CompletedJob,
  completedQueue,
  connectionOf,
  type RivalTuning,
  type TokensJob,
  tokensQueue,
  type WorkerSettings,
} from "./work.ts";

/** The service once more, on BullMQ: an entrance that enqueues, and worker processes. */
export class Rival {
  /** Of the worker processes. */
  readonly pids: readonly number[];
  readonly #processes: readonly Program[];
  readonly #cassandra: Cassandra;
  readonly #tokens: Queue;
  readonly #completions: Worker;
  readonly #completed: Map<string, () => void>;
  readonly #tokensPerJob: number;

  private constructor(parts: {
    processes: readonly Program[];
    cassandra: Cassandra;
    tokens: Queue;
    completions: Worker;
    completed: Map<string, () => void>;
    tokensPerJob: number;
  }) {
    this.#processes = parts.processes;
    this.pids = parts.processes.map(({ pid }) => pid);
    this.#cassandra = parts.cassandra;
    this.#tokens = parts.tokens;
    this.#completions = parts.completions;
    this.#completed = parts.completed;
    this.#tokensPerJob = parts.tokensPerJob;
  }

  /** In the keyspace and on the Redis of a test environment, under a name of its own. */
  static async start(environment: Readonly<Record<string, string>>, tuning: RivalTuning): Promise<Rival> {
    const settings: WorkerSettings = {
      redisUrl: environment.REDIS_URL ?? "",
      contactPoints: (environment.CASSANDRA_CONTACT_POINTS ?? "").split(","),
      datacenter: environment.CASSANDRA_DATACENTER ?? "",
      keyspace: environment.CASSANDRA_KEYSPACE ?? "",
      prefix: `rival-${randomBytes(4).toString("hex")}`,
      tuning,
    };
    const cassandra = await connectCassandra({ ...settings, logger: createLogger("rival", "warn") });
    const processes = await Promise.all(Array.from({ length: tuning.processes }, () => startWorker(settings)));
    const completed = new Map<string, () => void>();
    const queues = openQueues(loadBullMq(), settings, completed);
    return new Rival({ processes, cassandra, ...queues, completed, tokensPerJob: tuning.tokensPerJob });
  }

  /** Takes a refresh in: its rows and its jobs. Resolves when it is in Redis; `ended` when it is completed. */
  async accept(refresh: {
    projectId: number;
    collection: string;
    apiUrl: string;
    tokenIds: readonly string[];
  }): Promise<{ ended: Promise<void> }> {
    const record = recordOf(refresh);
    const ended = new Promise<void>((resolve) => {
      this.#completed.set(record.refresh_id, resolve);
    });
    const jobs = jobsOf(record, this.#tokensPerJob);
    await Promise.all([
      writeRefreshRows(this.#cassandra, record, { retentionSeconds: 90 * 86_400, nowMs: Date.now() }),
      this.#tokens.addBulk(jobs.map((data) => ({ name: "t", data }))),
    ]);
    return { ended };
  }

  async close(): Promise<void> {
    // Ctrl-C reaches the workers as well: they may be gone already, and the rest has to be closed all the same.
    await Promise.allSettled(this.#processes.map((program) => program.call("stop")));
    await Promise.all(this.#processes.map((program) => program.stop()));
    await this.#completions.close();
    await this.#tokens.obliterate({ force: true });
    await this.#tokens.close();
    await this.#cassandra.close();
  }
}

async function startWorker(settings: WorkerSettings): Promise<Program> {
  const program = startProgram(new URL("worker.ts", import.meta.url));
  await program.call("start", settings);
  return program;
}

function openQueues({ Queue, Worker }: BullMq, { redisUrl, prefix, tuning }: WorkerSettings, completed: Map<string, () => void>) {
  const connection = connectionOf(redisUrl, tuning.autoPipelining);
  // The same retries as the service has; what has ended is not kept.
  const defaultJobOptions = {
    attempts: 3,
    backoff: { type: "exponential", delay: 2_000 },
    removeOnComplete: true,
    removeOnFail: true,
  } as const;
  const tokens = new Queue(tokensQueue, { connection, prefix, defaultJobOptions });
  const completions = new Worker<CompletedJob>(completedQueue, async ({ data }) => completed.get(data.refreshId)?.(), {
    connection,
    prefix,
    concurrency: 1,
  });
  return { tokens, completions };
}

function recordOf(refresh: {
  projectId: number;
  collection: string;
  apiUrl: string;
  tokenIds: readonly string[];
}): RefreshRequested {
  const requestedAt = microsFromMs(Date.now());
  return {
    refresh_id: randomUUID(),
    project_id: refresh.projectId,
    collection_address: refresh.collection,
    token_ids: refresh.tokenIds,
    requested_at: requestedAt,
    deadline: requestedAt + 48 * 3_600_000_000,
    metadata_api_url: refresh.apiUrl,
    token_policy: "open",
    max_concurrency: null,
    max_requests_per_second: null,
  };
}

function jobsOf(record: RefreshRequested, tokensPerJob: number): TokensJob[] {
  const jobs: TokensJob[] = [];
  for (let first = 0; first < record.token_ids.length; first += tokensPerJob) {
    jobs.push({
      refreshId: record.refresh_id,
      total: record.token_ids.length,
      projectId: record.project_id,
      collection: record.collection_address,
      apiUrl: record.metadata_api_url,
      requestedAt: record.requested_at,
      firstOrdinal: first,
      tokenIds: record.token_ids.slice(first, first + tokensPerJob),
    });
  }
  return jobs;
}
