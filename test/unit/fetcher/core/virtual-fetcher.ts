import type { DecodedRecord, TopicPartition } from "../../../../services/common/kafka/contracts.ts";
import type { TokenOutcome, TokenRefresh } from "../../../../services/common/messages/records.ts";
import { Pipeline } from "../../../../services/fetcher/core/pipeline.ts";
import type { CallResult } from "../../../../services/fetcher/core/results.ts";
import { AdaptiveScheduler } from "../../../../services/fetcher/core/scheduling/adaptive-scheduler.ts";
import type { Work } from "../../../../services/fetcher/core/work.ts";
import { failure, rules, success, tokenRefresh, topics } from "./records.ts";
import { Events } from "./simulation/events.ts";

const partitions = 12;
const deliveryMs = 3;
const fetchEveryMs = 5;
const fetchedCount = 1_000;
const handedOutCount = 250;
/** A quarter of the usual one, so that a quarter of the records fills it. */
const windowRecords = 5_000;
const requestedAt = 1_790_000_000_000_000;

/** How a host answers a call that reaches it now. */
export type Answer = (nowMs: number) => { readonly status: 200 | 429; readonly ms: number } | "hangs";

export interface Host {
  readonly answer: Answer;
  /** As its owner declares it. */
  readonly maxConcurrency?: number;
}

interface Line extends TopicPartition {
  readonly delayMs: number;
  readonly log: { readonly atMs: number; readonly value: TokenRefresh }[];
  position: number;
  paused: boolean;
}

export interface Tally {
  answered: number;
  moved: number;
  /** Milliseconds from the request to the outcome. */
  readonly waitsMs: number[];
}

/**
 * The real pipeline with its overflow and scheduler, around virtual logs, tiers and hosts, in virtual time. What our own process
 * costs is not simulated.
 */
export class VirtualFetcher {
  readonly #events = new Events();
  readonly #lines: Line[];
  /** By topic, then by partition. */
  readonly #byTopic: ReadonlyMap<string, readonly Line[]>;
  readonly #hosts = new Map<number, Host>();
  readonly #tallies = new Map<number, Tally>();
  readonly #partitionOf = new Map<number, number>();
  readonly #pipeline: Pipeline;
  readonly failures: unknown[] = [];
  #window = 0;
  #full = false;
  #ringsAtMs = Number.POSITIVE_INFINITY;
  readonly #requestedAtMs = new Map<string, number>();

  constructor() {
    const all = [topics.tokenRequested, ...topics.retryTiers];
    this.#lines = all.flatMap(({ name, delayMs }) =>
      Array.from({ length: partitions }, (_, partition) => ({
        topic: name,
        partition,
        delayMs: delayMs ?? 0,
        log: [],
        position: 0,
        paused: false,
      })),
    );
    this.#byTopic = Map.groupBy(this.#lines, ({ topic }) => topic);
    this.#pipeline = this.#createPipeline();
    this.#fetch();
  }

  get nowMs(): number {
    return this.#events.nowMs;
  }

  /** Records that wait in the tiers. */
  get away(): number {
    return this.#lines
      .filter(({ delayMs }) => delayMs > 0)
      .reduce((total, { log, position }) => total + log.length - position, 0);
  }

  project(id: number, partition: number, host: Host): Tally {
    const tally = { answered: 0, moved: 0, waitsMs: [] };
    this.#hosts.set(id, host);
    this.#partitionOf.set(id, partition);
    this.#tallies.set(id, tally);
    return tally;
  }

  request(project: number, tokens: number): void {
    const refreshId = `00000000-0000-4000-8000-${String(this.#requestedAtMs.size).padStart(12, "0")}`;
    this.#requestedAtMs.set(refreshId, this.nowMs);
    for (let ordinal = 0; ordinal < tokens; ordinal += 1) {
      const value = tokenRefresh({
        refresh_id: refreshId,
        ordinal,
        total: tokens,
        project_id: project,
        metadata_api_url: `https://${project}.example/tokens`,
        max_concurrency: this.#hosts.get(project)?.maxConcurrency ?? null,
        first_queued_at: requestedAt + this.nowMs * 1_000,
      });
      this.#append(topics.tokenRequested.name, value);
    }
  }

  /** Everything that the outside does happens at its time, what follows from it in here within the same millisecond. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    while (this.nowMs < untilMs) {
      this.#events.run(Math.min(untilMs, this.nowMs + 1));
      await new Promise(setImmediate);
    }
  }

  #createPipeline(): Pipeline {
    return new Pipeline({
      scheduler: new AdaptiveScheduler<Work>({ perQueue: 256, total: 512 }),
      rules,
      clock: { nowMs: () => requestedAt / 1_000 + this.nowMs, monotonicMs: () => this.nowMs },
      ports: {
        call: (refresh) => this.#call(refresh),
        deliver: async (conclusion) => {
          await this.#after(deliveryMs);
          if (conclusion.kind === "retry") this.#append(conclusion.tier.name, conclusion.refresh);
          else this.#noteOutcome(conclusion.outcome);
          return "acknowledged";
        },
        move: async (refreshes, tier) => {
          await this.#after(deliveryMs);
          for (const refresh of refreshes) this.#append(tier.name, refresh);
          for (const refresh of refreshes) this.#tallyOf(refresh).moved += 1;
          return "acknowledged";
        },
        bury: async (_record, reason) => void this.failures.push(reason),
        finish: () => {
          this.#window -= 1;
          if (this.#window <= 0.8 * windowRecords) this.#full = false;
        },
        windowRecords,
        windowFull: () => this.#full,
        mayAct: () => true,
        pause: (partition) => this.#setPaused(partition, true),
        resume: (partition) => this.#setPaused(partition, false),
        hasRoom: () => true,
        endpointOf: (url) => ({ ok: true, url, origin: new URL(url).origin }),
        wakeAfter: (delayMs) => this.#ringAfter(delayMs),
        report: { started: () => {}, attempted: () => {}, duplicate: () => this.failures.push("duplicate"), moved: () => {} },
        fail: (cause) => this.failures.push(cause),
      },
    });
  }

  async #call(refresh: TokenRefresh): Promise<CallResult> {
    const answer = this.#hosts.get(refresh.project_id)?.answer(this.nowMs) ?? "hangs";
    const ms = answer === "hangs" ? 3_000 : answer.ms;
    await this.#after(ms);
    if (answer === "hangs") return failure({ detail: "timeout", status: null, excerpt: null });
    if (answer.status === 429) return failure({ detail: "rate_limited", status: 429 });
    this.#tallyOf(refresh).answered += 1;
    return success();
  }

  #noteOutcome(outcome: TokenOutcome): void {
    this.#tallyOf(outcome).waitsMs.push(this.nowMs - (this.#requestedAtMs.get(outcome.refresh_id) ?? Number.NaN));
  }

  #after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#events.after(ms, resolve));
  }

  #tallyOf({ project_id: id }: { readonly project_id: number }): Tally {
    const tally = this.#tallies.get(id);
    if (tally === undefined) throw new Error("no such project");
    return tally;
  }

  #append(topic: string, value: TokenRefresh): void {
    const partition = this.#partitionOf.get(value.project_id) ?? 0;
    this.#line({ topic, partition }).log.push({ atMs: this.nowMs, value });
  }

  #line({ topic, partition }: TopicPartition): Line {
    const line = this.#byTopic.get(topic)?.[partition];
    if (line === undefined) throw new Error("no such partition");
    return line;
  }

  #setPaused(partition: TopicPartition, paused: boolean): void {
    const line = this.#line(partition);
    if (line.paused === paused) this.failures.push(`${partition.topic} was ${paused ? "paused" : "resumed"} twice`);
    line.paused = paused;
  }

  #fetch(): void {
    for (const line of this.#lines) {
      for (const records of slices(this.#due(line))) this.#handOut(records);
    }
    this.#events.after(fetchEveryMs, () => this.#fetch());
  }

  #due(line: Line): DecodedRecord<TokenRefresh>[] {
    const { topic, partition, log, delayMs, paused, position } = line;
    const due: DecodedRecord<TokenRefresh>[] = [];
    while (!paused && !this.#full && due.length < fetchedCount) {
      const next = log[line.position];
      if (next === undefined || next.atMs + delayMs > this.nowMs) break;
      const offset = position + due.length;
      due.push({ topic, partition, offset, key: "", timestampMs: next.atMs, bytes: 300, value: next.value });
      line.position += 1;
    }
    return due;
  }

  #handOut(records: readonly DecodedRecord<TokenRefresh>[]): void {
    this.#window += records.length;
    if (this.#window >= windowRecords) this.#full = true;
    this.#pipeline.take(records);
  }

  #ringAfter(delayMs: number): void {
    const atMs = this.nowMs + delayMs;
    if (atMs >= this.#ringsAtMs) return;
    this.#ringsAtMs = atMs;
    this.#events.at(atMs, () => {
      if (atMs !== this.#ringsAtMs) return;
      this.#ringsAtMs = Number.POSITIVE_INFINITY;
      this.#pipeline.proceed();
    });
  }
}

function* slices<T>(all: readonly T[]): Iterable<T[]> {
  for (let from = 0; from < all.length; from += handedOutCount) yield all.slice(from, from + handedOutCount);
}
