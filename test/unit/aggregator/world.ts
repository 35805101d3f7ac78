import { isDeepStrictEqual } from "node:util";
import { countBits } from "../../../services/aggregator/core/bitmap.ts";
import type { RefreshWrite, TokenWrite } from "../../../services/aggregator/core/plan.ts";
import type { Publisher, RefreshStore, Telemetry, TokenStore } from "../../../services/aggregator/core/ports.ts";
import type { Progress } from "../../../services/aggregator/core/progress.ts";
import type { TokenHead } from "../../../services/aggregator/core/token.ts";
import { AbandonedError } from "../../../services/common/errors.ts";
import type { RefreshCompleted, TokenOutcome, TokenState } from "../../../services/common/messages/records.ts";

interface Cell {
  readonly value: unknown;
  readonly timestamp: number;
}
type TokenRow = Readonly<Record<string, unknown>>;

/** Tables and topics in memory, cells last-write-wins by timestamp as Cassandra has them. Outlives the instances that use it. */
export class World {
  readonly #tokens = new Map<string, Map<string, Cell>>();
  readonly #progress = new Map<string, { readonly value: Progress; readonly timestamp: number }>();
  readonly #errors = new Map<string, TokenOutcome>();
  readonly states: TokenState[] = [];
  readonly completions: RefreshCompleted[] = [];

  token(key: string): TokenRow | undefined {
    const cells = this.#tokens.get(key);
    return cells && Object.fromEntries([...cells].map(([column, { value }]) => [column, value]));
  }

  progress(refreshId: string): Progress | undefined {
    return this.#progress.get(refreshId)?.value;
  }

  get errors(): readonly TokenOutcome[] {
    return [...this.#errors.values()];
  }

  /** The compacted topic, by key. */
  get latestStates(): Map<string, TokenState> {
    return new Map(this.states.map((state) => [`${state.collection_address}:${state.token_id}`, state]));
  }

  writeToken({ outcome: { version, tokenKey, record }, content }: TokenWrite): void {
    const row = this.#tokens.get(tokenKey) ?? new Map<string, Cell>();
    this.#tokens.set(tokenKey, row);
    const values: Record<string, unknown> = { refreshed_at: record.created_at, refresh_id: record.refresh_id };
    if (content !== null) Object.assign(values, { metadata: content.metadata, ...content.head });
    for (const [column, value] of Object.entries(values)) {
      const stored = row.get(column);
      if (stored?.timestamp === version) mustEqual(stored.value, value, `${tokenKey}.${column} at ${version}`);
      if (stored === undefined || stored.timestamp < version) row.set(column, { value, timestamp: version });
    }
    if (content !== null && !this.states.some((state) => state.version === content.head.version)) {
      throw new Error(`the row of ${tokenKey} was written before its state was published`);
    }
  }

  writeRefresh({ refreshId, progress, failures }: RefreshWrite): void {
    const { version } = progress;
    // A row holds bytes of its own: what happens to the memory they came from must not reach it.
    const value = { ...progress, done: new Uint8Array(progress.done), failed: new Uint8Array(progress.failed) };
    const stored = this.#progress.get(refreshId);
    if (stored?.timestamp === version) mustEqual(stored.value, value, `progress of ${refreshId} at ${version}`);
    if (stored === undefined || stored.timestamp < version) this.#progress.set(refreshId, { value, timestamp: version });
    for (const { record } of failures) this.#errors.set(`${refreshId}/${record.created_at}/${record.ordinal}`, record);
  }

  complete(completion: RefreshCompleted): void {
    const progress = this.progress(completion.refresh_id);
    if (progress === undefined || countBits(progress.done) !== completion.total) {
      throw new Error(`${completion.refresh_id} was said to be complete before its progress`);
    }
    this.completions.push(completion);
  }
}

/** Two contents for one timestamp: Cassandra would keep the larger value of each cell, a mixture. */
function mustEqual(stored: unknown, written: unknown, what: string): void {
  if (!isDeepStrictEqual(stored, written)) {
    throw new Error(`${what}: ${JSON.stringify(written)} over ${JSON.stringify(stored)}`);
  }
}

/**
 * Ports into the world. `step` is awaited before every single effect, and before each half of a read: it may wait, and it may throw
 * as a crash would; what was done until then stays done.
 */
export function portsInto(
  world: World,
  step: () => Promise<void>,
): { tokens: TokenStore; refreshes: RefreshStore; publisher: Publisher; telemetry: Telemetry } {
  const oneByOne = async <T>(items: readonly T[], effect: (item: T) => void) => {
    for (const item of items) {
      await step();
      effect(item);
    }
  };
  return {
    tokens: {
      async load(tokens) {
        const heads = new Map<string, TokenHead>();
        await oneByOne(tokens, ({ collection_address, token_id }) => {
          const key = `${collection_address}:${token_id}`;
          const row = world.token(key);
          if (row?.version !== undefined) heads.set(key, headOf(row));
        });
        await step();
        return heads;
      },
      write: (writes) => oneByOne(writes, (write) => world.writeToken(write)),
    },
    refreshes: {
      async load(refreshIds) {
        const found = new Map<string, Progress>();
        await oneByOne(refreshIds, (id) => {
          const progress = world.progress(id);
          if (progress !== undefined) found.set(id, readBack(progress));
        });
        await step();
        return found;
      },
      write: (writes) => oneByOne(writes, (write) => world.writeRefresh(write)),
    },
    publisher: {
      publishStates: (states, { mayAct }) => oneByOne(states, (state) => underLease(mayAct, () => world.states.push(state))),
      publishCompletions: (completions, { mayAct }) =>
        oneByOne(completions, (completion) => underLease(mayAct, () => world.complete(completion))),
    },
    telemetry: { segmentApplied() {}, batchStarted: () => () => {}, fenced() {} },
  };
}

/** Cassandra gives a map back in the order of its keys. */
/** As the driver gives a row: blobs are Buffers, a map comes sorted. */
function readBack(progress: Progress): Progress {
  const { done, failed, failedByCode } = progress;
  return { ...progress, done: Buffer.from(done), failed: Buffer.from(failed), failedByCode: sorted(failedByCode) };
}

function sorted(counts: Progress["failedByCode"]): Progress["failedByCode"] {
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function underLease(mayAct: () => boolean, effect: () => void): void {
  if (!mayAct()) throw new AbandonedError("no lease");
  effect();
}

function headOf({ version, contentHash, previousHash }: TokenRow): TokenHead {
  return { version: Number(version), contentHash: String(contentHash), previousHash: String(previousHash) };
}
