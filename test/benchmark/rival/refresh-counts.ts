import type { Redis } from "ioredis";
import type { Outcome } from "../../../services/aggregator/core/outcome.ts";
import type { RefreshStore } from "../../../services/aggregator/core/ports.ts";
import { noProgress, type Progress } from "../../../services/aggregator/core/progress.ts";
import type { CompletedJob } from "./work.ts";

export interface RefreshCountsOptions {
  readonly redis: Pick<Redis, "eval" | "getBuffer">;
  readonly refreshes: Pick<RefreshStore, "write">;
  completed(refresh: CompletedJob): Promise<unknown>;
}

const neverAborted = new AbortController().signal;

/**
 * How far each refresh is. Many workers have tokens of one refresh, so the count lives in Redis, where one command decides who
 * brought the last token; that one writes the progress row, once, and tells the world. The pipeline writes it at every step.
 */
export class RefreshCounts {
  readonly #options: RefreshCountsOptions;

  constructor(options: RefreshCountsOptions) {
    this.#options = options;
  }

  async add(outcomes: readonly Outcome[]): Promise<void> {
    const byRefresh = Map.groupBy(outcomes, ({ record }) => record.refresh_id);
    await Promise.all(Array.from(byRefresh.values(), (group) => this.#addTo(group)));
  }

  async #addTo(outcomes: readonly Outcome[]): Promise<void> {
    const last = outcomes.at(-1);
    if (last === undefined) return;
    const { refresh_id: refreshId, requested_at: requestedAt, total } = last.record;
    const { redis, refreshes, completed } = this.#options;
    const done = await redis.eval(markScript, 2, bitmapOf(refreshId), countOf(refreshId), ...outcomes.map(bitOf));
    if (Number(done) < total) return;
    const progress = completedBy(last, (await redis.getBuffer(bitmapOf(refreshId))) ?? Buffer.alloc(0));
    await refreshes.write([{ refreshId, requestedAt, progress, failures: [] }], neverAborted);
    await completed({ refreshId, succeeded: progress.succeededCount });
  }
}

function completedBy({ version, record }: Outcome, done: Buffer): Progress {
  const completed = { completedAt: record.created_at, completedVersion: version };
  return { ...noProgress(record.total), version, done, succeededCount: record.total, ...completed };
}

const bitmapOf = (refreshId: string): string => `done:${refreshId}`;
const countOf = (refreshId: string): string => `count:${refreshId}`;

/** Redis counts bits from the highest of a byte, the progress row from the lowest. */
const bitOf = ({ record: { ordinal } }: Outcome): number => (ordinal & ~7) | (7 - (ordinal & 7));

/** Marks ordinals as done; gives the number of those that are. A job that runs twice counts once. */
const markScript = `
local new = 0
for i = 1, #ARGV do
  if redis.call('SETBIT', KEYS[1], ARGV[i], 1) == 0 then new = new + 1 end
end
redis.call('EXPIRE', KEYS[1], 172800)
local count = redis.call('INCRBY', KEYS[2], new)
redis.call('EXPIRE', KEYS[2], 172800)
return count
`;
