import { type Clock, microsFromMs } from "../../common/clock.ts";
import type { DecodedRecord, TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import { parseTokenId } from "../../common/messages/token-id.ts";
import { type AttemptRules, type Conclusion, conclude } from "./attempt-rules.ts";
import type { Endpoint } from "./endpoint.ts";
import { FinishedWork, identityOf } from "./finished-work.ts";
import { closedByDeadline, closedByLastAttempt, failed, withoutBody } from "./outcomes.ts";
import type { CallFailed, CallResult } from "./results.ts";
import type { Schedulable, Scheduler } from "./scheduler.ts";

export type Position = TopicPartition & { readonly offset: number };

/** One token refresh on its way through this process. */
export interface Work extends Schedulable {
  readonly identity: string;
  readonly refresh: TokenRefresh;
  readonly endpoint: Endpoint;
  /** Every place in the log that is finished with it: the record's, and those of its duplicates that came meanwhile. */
  readonly positions: Position[];
  readonly offeredAtMs: number;
  /** Its partition went to another member: what comes of it has no effect, unless the record comes back first. */
  lost: boolean;
}

/** How a delivery ended; `abandoned`: it was wanted no more before it could be made. */
export type Delivery = "acknowledged" | "too_large" | "abandoned";

/** What the pipeline needs of the world. */
export interface PipelinePorts {
  /** Never rejects. */
  call(refresh: TokenRefresh, endpoint: Endpoint & { ok: true }): Promise<CallResult>;
  /** `wanted` is asked before each try. */
  deliver(conclusion: Conclusion, wanted: () => boolean): Promise<Delivery>;
  /** The record can never be processed; acknowledged when it resolves. */
  bury(record: DecodedRecord<TokenRefresh>, reason: string): Promise<void>;
  finish(position: Position): void;
  /** The lease: may a call start? */
  mayAct(partition: TopicPartition): boolean;
  /** Whether the memory for bodies has room for another call. */
  hasRoom(): boolean;
  endpointOf(metadataApiUrl: string): Endpoint;
  /** Asks for `proceed` after this many milliseconds; a later request replaces an earlier one. */
  wakeAfter(delayMs: number): void;
  report: PipelineReport;
  /** A bug, or a record that no topic can take: nothing here can go on. */
  fail(cause: unknown): void;
}

export interface PipelineReport {
  started(work: Work, waitedMs: number): void;
  /** After a call, and for a URL that is not called. */
  attempted(work: Work, result: CallResult, conclusion: Conclusion): void;
  duplicate(): void;
}

/** How long to wait for a lease that has lapsed: it comes back with the next good heartbeat. */
const leaseRetryMs = 100;

/**
 * From a record that is due to its outcome, or to the record of its next attempt in a delay tier, acknowledged. Records come from
 * `take`; what may start does so at every `proceed`.
 */
export class Pipeline {
  readonly #scheduler: Scheduler<Work>;
  readonly #rules: AttemptRules;
  readonly #clock: Clock;
  readonly #ports: PipelinePorts;
  readonly #underWay = new Map<string, Work>();
  readonly #finished: FinishedWork;
  #unsettledCount = 0;
  #stopping = false;
  #onSettled: (() => void) | undefined;

  constructor(options: { scheduler: Scheduler<Work>; rules: AttemptRules; clock: Clock; ports: PipelinePorts }) {
    this.#scheduler = options.scheduler;
    this.#rules = options.rules;
    this.#clock = options.clock;
    this.#ports = options.ports;
    this.#finished = new FinishedWork(() => options.clock.monotonicMs());
  }

  take(records: readonly DecodedRecord<TokenRefresh>[]): void {
    for (const record of records) this.#admit(record);
    this.proceed();
  }

  /** Starts every call that may start now. */
  proceed(): void {
    while (!this.#stopping && this.#ports.hasRoom() && this.#startNext());
  }

  /**
   * Another member has these partitions now: what waits is forgotten, what is under way ends without effect. Only this counts as a
   * loss: between two assignments a partition is nobody's, and a record of it that was forgotten then would never come back.
   */
  lost(partitions: readonly TopicPartition[]): void {
    const names = new Set(partitions.map(nameOf));
    for (const work of this.#underWay.values()) work.lost ||= work.positions.every((position) => names.has(nameOf(position)));
    this.#forget(this.#scheduler.drop((work) => work.lost));
  }

  /** Starts nothing more; resolves when all that was started is acknowledged or abandoned. */
  stop(): Promise<void> {
    this.#stopping = true;
    this.#forget(this.#scheduler.drop(() => true));
    return new Promise((resolve) => {
      this.#onSettled = resolve;
      if (this.#unsettledCount === 0) resolve();
    });
  }

  #admit(record: DecodedRecord<TokenRefresh>): void {
    const { topic, partition, offset, value: refresh } = record;
    const position = { topic, partition, offset };
    const identity = identityOf(refresh);
    const original = this.#underWay.get(identity);
    const invalid = invalidity(refresh, this.#rules);
    if (original !== undefined) this.#join(original, position);
    else if (this.#finished.has(identity)) this.#skip(position);
    else if (invalid !== undefined) this.#settle(this.#bury(record, invalid));
    else this.#begin(this.#work(refresh, { identity, position }));
  }

  /** The duplicate is finished when its original is. */
  #join(original: Work, position: Position): void {
    this.#ports.report.duplicate();
    original.positions.push(position);
    original.lost = false;
  }

  #skip(position: Position): void {
    this.#ports.report.duplicate();
    this.#ports.finish(position);
  }

  async #bury(record: DecodedRecord<TokenRefresh>, reason: string): Promise<void> {
    await this.#ports.bury(record, reason);
    this.#ports.finish(record);
  }

  #begin(work: Work): void {
    this.#underWay.set(work.identity, work);
    const closing = this.#closing(work);
    if (closing === undefined) this.#scheduler.offer(work, work.offeredAtMs);
    else this.#settle(this.#deliver(work, closing));
  }

  #work(refresh: TokenRefresh, { identity, position }: { identity: string; position: Position }): Work {
    const endpoint = this.#ports.endpointOf(refresh.metadata_api_url);
    return {
      identity,
      refresh,
      endpoint,
      positions: [position],
      offeredAtMs: this.#clock.monotonicMs(),
      queue: `${refresh.project_id} ${endpoint.ok ? endpoint.origin : ""}`,
      maxConcurrency: refresh.max_concurrency,
      maxRequestsPerSecond: refresh.max_requests_per_second,
      firstQueuedAt: refresh.first_queued_at,
      lastAttempt: refresh.attempt >= this.#rules.maxAttempts,
      lost: false,
    };
  }

  /** How a token ends that is not to be called any more, or at all. */
  #closing(work: Work): Conclusion | undefined {
    const { refresh, endpoint } = work;
    const last = refresh.attempts.at(-1);
    const usedUp = refresh.attempt > this.#rules.maxAttempts;
    if (usedUp && last !== undefined) return { kind: "outcome", outcome: closedByLastAttempt(refresh, last) };
    const nowMs = this.#clock.nowMs();
    if (microsFromMs(nowMs) >= refresh.deadline) return { kind: "outcome", outcome: closedByDeadline(refresh) };
    return endpoint.ok ? undefined : this.#refuse(work, { ...endpoint, ...nothingReceived, startedAtMs: nowMs });
  }

  #refuse(work: Work, result: CallFailed): Conclusion {
    const conclusion: Conclusion = { kind: "outcome", outcome: failed(work.refresh, result) };
    this.#ports.report.attempted(work, result, conclusion);
    return conclusion;
  }

  /** False when none may start now; what must wait for nothing but time has set its alarm then. */
  #startNext(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const work = this.#scheduler.take(nowMs);
    if (work === undefined) {
      this.#sleep(nowMs);
      return false;
    }
    if (!work.positions.some((position) => this.#ports.mayAct(position))) {
      this.#postpone(work, nowMs);
      return false;
    }
    this.#settle(this.#start(work));
    return true;
  }

  async #start(work: Work): Promise<void> {
    const { refresh, endpoint } = work;
    const waitedMs = this.#clock.monotonicMs() - work.offeredAtMs;
    const closing = this.#closing(work);
    if (closing !== undefined || !endpoint.ok) {
      this.#scheduler.finish(work, undefined, this.#clock.monotonicMs());
      return closing && this.#deliver(work, closing);
    }
    this.#ports.report.started(work, waitedMs);
    const result = await this.#ports.call(refresh, endpoint);
    this.#scheduler.finish(work, result, this.#clock.monotonicMs());
    const conclusion = conclude(refresh, result, this.#rules);
    this.#ports.report.attempted(work, result, conclusion);
    const delivered = this.#deliver(work, conclusion);
    this.proceed();
    return delivered;
  }

  async #deliver(work: Work, conclusion: Conclusion): Promise<void> {
    const delivery = await this.#ports.deliver(conclusion, () => !work.lost);
    if (delivery === "acknowledged") return this.#finish(work);
    if (delivery === "abandoned") return this.#abandon(work);
    const smaller = conclusion.kind === "outcome" ? withoutBody(conclusion.outcome) : undefined;
    if (smaller === undefined) throw new Error(`the record for ${work.identity} is too large for its topic`);
    return this.#deliver(work, { kind: "outcome", outcome: smaller });
  }

  #finish(work: Work): void {
    this.#underWay.delete(work.identity);
    this.#finished.add(work.identity);
    for (const position of work.positions) this.#ports.finish(position);
    this.proceed();
  }

  /** Assigned to us again while its delivery was given up: the record that came back counts on this work. */
  #abandon(work: Work): void {
    if (work.lost) this.#forget([work]);
    else this.#scheduler.offer(work, this.#clock.monotonicMs());
    this.proceed();
  }

  #forget(works: readonly Work[]): void {
    for (const work of works) this.#underWay.delete(work.identity);
  }

  #sleep(nowMs: number): void {
    const nextMs = this.#scheduler.nextStartMs();
    if (nextMs !== undefined) this.#ports.wakeAfter(Math.max(1, Math.ceil(nextMs - nowMs)));
  }

  #postpone(work: Work, nowMs: number): void {
    this.#scheduler.finish(work, undefined, nowMs);
    this.#scheduler.offer(work, nowMs);
    this.#ports.wakeAfter(leaseRetryMs);
  }

  #settle(task: Promise<void>): void {
    this.#unsettledCount += 1;
    void task.catch(this.#ports.fail).then(() => {
      this.#unsettledCount -= 1;
      if (this.#unsettledCount === 0) this.#onSettled?.();
    });
  }
}

const nothingReceived = { ok: false, status: null, excerpt: null, durationMs: 0, bodyBytes: 0 } as const;

function nameOf({ topic, partition }: TopicPartition): string {
  return `${partition}/${topic}`;
}

/** What no producer of ours writes. A text may lead to another path of the host. Under a ceiling below one a record would wait for ever, and its partition with it. */
function invalidity(refresh: TokenRefresh, rules: AttemptRules): string | undefined {
  const { token_id: tokenId, attempt, attempts, max_concurrency: concurrency, max_requests_per_second: rate } = refresh;
  if (parseTokenId(tokenId) === undefined) return "a token_id that is no token id";
  if (attempt < 1) return `attempt ${attempt}`;
  if (Math.min(concurrency ?? 1, rate ?? 1) < 1) return `ceilings of ${concurrency} calls at once and ${rate} a second`;
  return attempt > rules.maxAttempts && attempts.length === 0 ? `attempt ${attempt} without the attempts before it` : undefined;
}
