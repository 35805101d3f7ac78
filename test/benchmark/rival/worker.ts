import { Redis } from "ioredis";
import { createDurableWrite } from "../../../services/aggregator/adapters/durable-write.ts";
import { createRefreshStore } from "../../../services/aggregator/adapters/refresh-store.ts";
import { createTokenStore } from "../../../services/aggregator/adapters/token-store.ts";
import type { Outcome } from "../../../services/aggregator/core/outcome.ts";
import { connectCassandra } from "../../../services/common/cassandra/session.ts";
import { microsFromMs, systemClock } from "../../../services/common/clock.ts";
import { addressPolicy } from "../../../services/common/http/address-guard.ts";
import { createLogger } from "../../../services/common/logging/logger.ts";
import type { TokenRefresh } from "../../../services/common/messages/records.ts";
import { tokenUrl } from "../../../services/common/messages/token-url.ts";
import { createMetadataApi, type MetadataApi } from "../../../services/fetcher/adapters/metadata-api.ts";
import { createResolver } from "../../../services/fetcher/adapters/resolver.ts";
import { succeeded } from "../../../services/fetcher/core/outcomes.ts";
import { serveProgram } from "../programs/program.ts";
import { type Job, loadBullMq } from "./bullmq.ts";
import { RefreshCounts } from "./refresh-counts.ts";
import { RowWriter } from "./row-writer.ts";
import { completedQueue, connectionOf, type TokensJob, tokensQueue, type WorkerSettings } from "./work.ts";

/** One worker process of the rival. BullMQ hands it jobs of tokens; each ends when the rows of its tokens are stored. */
serveProgram({
  start: async (settings: WorkerSettings) => {
    stop = await start(settings);
  },
  stop: () => stop(),
});

let stop: () => Promise<void> = async () => undefined;

async function start(settings: WorkerSettings): Promise<() => Promise<void>> {
  const { tuning, prefix, redisUrl } = settings;
  const { Queue, Worker } = loadBullMq();
  const connection = connectionOf(redisUrl, tuning.autoPipelining);
  const logger = createLogger("rival", "warn");
  const cassandra = await connectCassandra({ ...settings, logger });
  // Patient, as BullMQ's own connections are.
  const redis = new Redis(redisUrl, {
    keyPrefix: `${prefix}:`,
    maxRetriesPerRequest: null,
    enableAutoPipelining: tuning.autoPipelining,
  });
  const completions = new Queue(completedQueue, { connection, prefix });
  const api = createGuardedApi();
  const untilDurable = createDurableWrite(logger);
  const retention = { nowMs: systemClock.nowMs, retentionSeconds: 90 * 86_400 };
  const rows = new RowWriter({
    tokens: createTokenStore(cassandra, untilDurable),
    counts: new RefreshCounts({
      redis,
      refreshes: createRefreshStore({ cassandra, untilDurable, ...retention }),
      completed: (refresh) => completions.add("refresh", refresh, { removeOnComplete: true }),
    }),
    flushRows: tuning.flushRows,
    flushAfterMs: tuning.flushAfterMs,
  });
  const workers = Array.from({ length: tuning.workersPerProcess }, () => {
    const concurrency = Math.ceil(tuning.concurrency / tuning.workersPerProcess);
    const process = ({ data }: Job<TokensJob>) => work(data, { api, rows });
    const worker = new Worker<TokensJob>(tokensQueue, process, { connection, prefix, concurrency });
    worker.on("error", (error) => logger.error({ err: error }, "worker.error"));
    worker.on("failed", (_job, error) => logger.error({ err: error }, "job.failed"));
    return worker;
  });
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await completions.close();
    api.close();
    await Promise.all([cassandra.close(), redis.quit()]);
  };
}

/** The very call of the fetcher, with its deadline, cap, guard and judgement of the body. */
function createGuardedApi(): MetadataApi {
  return createMetadataApi({
    policy: addressPolicy({ METADATA_API_ALLOWED_RANGES: ["127.0.0.0/8"], METADATA_API_ALLOWED_PORTS: ["*"] }),
    resolve: createResolver(),
    clock: systemClock,
    timeoutMs: 3_000,
    bodyCapBytes: 262_144,
  });
}

interface Tools {
  readonly api: MetadataApi;
  readonly rows: RowWriter;
}

async function work(job: TokensJob, tools: Tools): Promise<void> {
  await Promise.all(job.tokenIds.map((_, index) => refreshToken(job, index, tools)));
}

/** The benchmark's API answers every call well: anything else fails the job, is tried again by BullMQ, and shows in the log. */
async function refreshToken(job: TokensJob, index: number, { api, rows }: Tools): Promise<void> {
  const refresh = tokenRefreshOf(job, index);
  const url = new URL(tokenUrl(job.apiUrl, refresh.token_id));
  const result = await api.call({ projectId: job.projectId, origin: url.origin, path: url.pathname });
  if (!result.ok) throw new Error(`the API answered ${result.status}: ${result.detail}`);
  const record = succeeded(refresh, result);
  const outcome: Outcome = {
    version: microsFromMs(Date.now()),
    bytes: result.bodyBytes,
    tokenKey: `${job.collection}:${refresh.token_id}`,
    record,
    result: { ok: true, metadata: result.text, contentHash: result.contentHash },
  };
  await rows.write(outcome);
}

function tokenRefreshOf(job: TokensJob, index: number): TokenRefresh {
  return {
    refresh_id: job.refreshId,
    ordinal: job.firstOrdinal + index,
    total: job.total,
    project_id: job.projectId,
    collection_address: job.collection,
    token_id: job.tokenIds[index] ?? "",
    requested_at: job.requestedAt,
    deadline: job.requestedAt + 48 * 3_600_000_000,
    metadata_api_url: job.apiUrl,
    max_concurrency: null,
    max_requests_per_second: null,
    emission: 1,
    attempt: 1,
    first_queued_at: job.requestedAt,
    attempts: [],
  };
}
