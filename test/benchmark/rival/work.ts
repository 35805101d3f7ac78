/** What a worker process is started with, as JSON in its first argument. */
export interface WorkerSettings {
  readonly redisUrl: string;
  readonly contactPoints: readonly string[];
  readonly datacenter: string;
  readonly keyspace: string;
  /** Of the queues' keys in Redis. */
  readonly prefix: string;
  readonly tuning: RivalTuning;
}

/** What was turned to make the rival fast. */
export interface RivalTuning {
  readonly processes: number;
  /** Jobs under way per process. */
  readonly concurrency: number;
  /** BullMQ workers in a process that share its concurrency: each fetches one job after the other. */
  readonly workersPerProcess: number;
  readonly tokensPerJob: number;
  /** Commands of one turn of the loop go to Redis together. */
  readonly autoPipelining: boolean;
  /** Rows are written together: as many as came in this time, or as many as this. */
  readonly flushAfterMs: number;
  readonly flushRows: number;
}

/** Tokens of one refresh that one job is about. */
export interface TokensJob {
  readonly refreshId: string;
  readonly total: number;
  readonly projectId: number;
  readonly collection: string;
  readonly apiUrl: string;
  /** Micros. */
  readonly requestedAt: number;
  readonly firstOrdinal: number;
  readonly tokenIds: readonly string[];
}

/** A refresh that has ended. */
export interface CompletedJob {
  readonly refreshId: string;
  readonly succeeded: number;
}

export const tokensQueue = "tokens";
export const completedQueue = "completed";

/** BullMQ's blocking commands must be allowed to wait. */
export function connectionOf(redisUrl: string, autoPipelining: boolean): Readonly<Record<string, unknown>> {
  return { url: redisUrl, maxRetriesPerRequest: null, enableAutoPipelining: autoPipelining };
}
