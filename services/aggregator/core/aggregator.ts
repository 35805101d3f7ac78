import { AbandonedError } from "../../common/errors.ts";
import type { BatchContext, BatchHandler, TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenOutcome } from "../../common/messages/records.ts";
import { FencedPartitionError, fenceReason } from "./fence.ts";
import { checkOutcome, type Outcome } from "./outcome.ts";
import { type Known, type Plan, planBatch, type Segment } from "./plan.ts";
import type { Cache, Publisher, RefreshStore, Telemetry, TokenAddress, TokenStore } from "./ports.ts";
import { isDone, type Progress } from "./progress.ts";
import { versionOf } from "./version.ts";

export interface AggregatorParts {
  /** Of the topic token.outcome. */
  readonly generation: number;
  readonly tokens: TokenStore;
  readonly refreshes: RefreshStore;
  readonly publisher: Publisher;
  readonly progress: Cache<Progress>;
  readonly telemetry: Telemetry;
}

/** Turns the outcomes of tokens into token rows, progress, and what marketplaces see, exactly once in effect. */
export class Aggregator {
  readonly #parts: AggregatorParts;
  readonly #fences = new Map<string, string>();

  constructor(parts: AggregatorParts) {
    this.#parts = parts;
  }

  /** Outcomes of one partition, in order. Returns when everything they cause is durable. */
  readonly handle: BatchHandler<TokenOutcome> = async (records, context) => {
    const outcomes = records.map((record) => checkOutcome(record, this.#parts.generation));
    const applied = this.#parts.telemetry.batchStarted();
    try {
      const plan = await this.#plan(outcomes, context);
      for (const segment of plan.segments) await this.#apply(segment, context);
      for (const [refreshId, value] of plan.after.progress) this.#parts.progress.set(refreshId, value);
      this.#fences.delete(nameOf(context));
      applied(plan);
    } catch (error) {
      for (const { record } of outcomes) this.#parts.progress.delete(record.refresh_id);
      throw error;
    }
  };

  /** At every new assignment: what another member has written since is not in the cache. */
  forget(): void {
    this.#parts.progress.clear();
    this.#fences.clear();
  }

  /** For /readyz: undefined is well. */
  health(): string | undefined {
    return this.#fences.size === 0 ? undefined : [...this.#fences].map(([name, reason]) => `${name}: ${reason}`).join("; ");
  }

  /** Partitions that stand still because of a fence. */
  get fencedCount(): number {
    return this.#fences.size;
  }

  async #plan(outcomes: readonly Outcome[], context: BatchContext): Promise<Plan> {
    const known = await this.#load(outcomes);
    const plan = planBatch(outcomes, known);
    const reason = fenceReason(known, plan, versionOf(this.#parts.generation, context.highWatermark));
    // What the next owner has written lies behind the end that we knew, and is of the same log.
    this.#keepLease(context);
    if (reason !== undefined) this.#fence(context, reason);
    return plan;
  }

  /**
   * Progress first, then heads, because a former owner may still be writing. What progress already has is in its token's row, so a
   * head that is read afterwards is not older. Heads are not kept: few tokens come again soon, and neighbours are read together.
   */
  async #load(outcomes: readonly Outcome[]): Promise<Known> {
    const progress = await this.#loadProgress([...new Set(outcomes.map(({ record }) => record.refresh_id))]);
    const tokens = new Map<string, TokenAddress>();
    for (const { tokenKey, result, record } of outcomes) {
      const stored = progress.get(record.refresh_id);
      if (result.ok && !(stored !== undefined && isDone(stored, record.ordinal))) tokens.set(tokenKey, record);
    }
    return { heads: await this.#parts.tokens.load([...tokens.values()]), progress };
  }

  /** From memory, and the rest from its rows. Memory is not filled here: that is for after the effects. */
  async #loadProgress(refreshIds: readonly string[]): Promise<ReadonlyMap<string, Progress>> {
    const { progress, refreshes } = this.#parts;
    const cached = new Map<string, Progress>();
    const missing: string[] = [];
    for (const id of refreshIds) {
      const value = progress.get(id);
      if (value === undefined) missing.push(id);
      else cached.set(id, value);
    }
    return missing.length === 0 ? cached : new Map([...cached, ...(await refreshes.load(missing))]);
  }

  /**
   * The order is the guarantee: a crash behind any line replays to the same bytes (README, Exactness, order of effects). The lease
   * is asked for although Cassandra fences its rows: a former owner that reads on would write versions that the owner, who fetched
   * earlier, has to take for those of another log.
   */
  async #apply(segment: Segment, context: BatchContext): Promise<void> {
    this.#keepLease(context);
    const { tokens, refreshes, publisher, telemetry } = this.#parts;
    await publisher.publishStates(segment.states, context);
    await tokens.write(segment.tokens, context.signal);
    await refreshes.write(segment.refreshes, context.signal);
    await publisher.publishCompletions(segment.completions, context);
    telemetry.segmentApplied(segment);
  }

  #keepLease(context: BatchContext): void {
    if (context.signal.aborted || !context.mayAct()) throw new AbandonedError("the partition may belong to another member");
  }

  #fence(partition: TopicPartition, reason: string): never {
    const name = nameOf(partition);
    if (!this.#fences.has(name)) this.#parts.telemetry.fenced(partition, reason);
    this.#fences.set(name, reason);
    throw new FencedPartitionError(`${name}: ${reason}`);
  }
}

function nameOf({ topic, partition }: TopicPartition): string {
  return `${topic}/${partition}`;
}
