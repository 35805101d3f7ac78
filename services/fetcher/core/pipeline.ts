import { type Clock, microsFromMs } from "../../common/clock.ts";
import type { DecodedRecord, TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import { type AttemptRules, type Conclusion, conclude, invalidity } from "./attempt-rules.ts";
import { FinishedWork, identityOf } from "./finished-work.ts";
import { closedByDeadline, closedByLastAttempt, failed, withoutBody } from "./outcomes.ts";
import { type Move, Overflow } from "./overflow.ts";
import type { PipelinePorts } from "./ports.ts";
import type { CallFailed } from "./results.ts";
import type { Scheduler } from "./scheduler.ts";
import { isLost, isSamePlace, nameOf, type Position, type Work } from "./work.ts";

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
  readonly #overflow: Overflow;
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
    this.#overflow = new Overflow({ scheduler: options.scheduler, tiers: options.rules.tiers, ports: options.ports });
    this.#finished = new FinishedWork(() => options.clock.monotonicMs());
  }

  /** Records of one partition, in order. */
  take(records: readonly DecodedRecord<TokenRefresh>[]): void {
    const works = records.map((record) => this.#admit(record));
    const [partition] = records;
    if (partition === undefined || this.#stopping) return;
    this.#moveAll(this.#overflow.taken(partition, works, this.#clock.monotonicMs()));
    this.proceed();
  }

  /** Starts every call that may start now, and moves what has to leave. */
  proceed(): void {
    if (this.#stopping) return;
    const nowMs = this.#clock.monotonicMs();
    this.#moveAll(this.#overflow.look(this.#underWay.values(), nowMs));
    while (this.#ports.hasRoom() && this.#startNext(nowMs));
    this.#sleep(nowMs);
  }

  /**
   * Another member has these partitions now: what waits is forgotten, what is under way ends without effect. Only this counts as a
   * loss: between two assignments a partition is nobody's, and a record of it that was forgotten then would never come back.
   */
  lost(partitions: readonly TopicPartition[]): void {
    const names = new Set(partitions.map(nameOf));
    const isKept = (position: Position): boolean => !names.has(nameOf(position));
    for (const work of this.#underWay.values()) {
      if (!work.positions.every(isKept)) work.positions = work.positions.filter(isKept);
    }
    this.#forget(this.#scheduler.drop(isLost));
    this.#overflow.lost(partitions);
  }

  /** Starts nothing more; resolves when all that was started is acknowledged or abandoned. */
  stop(): Promise<void> {
    this.#stopping = true;
    this.#overflow.stop();
    this.#forget(this.#scheduler.drop(() => true));
    return new Promise((resolve) => {
      this.#onSettled = resolve;
      if (this.#unsettledCount === 0) resolve();
    });
  }

  #admit(record: DecodedRecord<TokenRefresh>): Work {
    const { topic, partition, offset, value: refresh } = record;
    const position = { topic, partition, offset };
    const work = this.#work(refresh, position);
    const original = this.#underWay.get(work.identity);
    const invalid = invalidity(refresh, this.#rules);
    if (original !== undefined) this.#join(original, position);
    else if (this.#finished.has(work.identity)) this.#skip(position);
    else if (invalid !== undefined) this.#settle(this.#bury(record, invalid));
    else this.#begin(work);
    return work;
  }

  /** The duplicate is finished when its original is. */
  #join(original: Work, position: Position): void {
    this.#ports.report.duplicate();
    original.positions = [...original.positions, position];
  }

  #skip(position: Position): void {
    this.#ports.report.duplicate();
    this.#leaveAt(position, { moved: false });
  }

  async #bury(record: DecodedRecord<TokenRefresh>, reason: string): Promise<void> {
    await this.#ports.bury(record, reason);
    this.#leaveAt(record, { moved: false });
  }

  #begin(work: Work): void {
    this.#underWay.set(work.identity, work);
    const closing = this.#closing(work);
    if (closing === undefined) this.#scheduler.offer(work, work.offeredAtMs);
    else this.#settle(this.#deliver(work, closing));
  }

  #work(refresh: TokenRefresh, position: Position): Work {
    const endpoint = this.#ports.endpointOf(refresh.metadata_api_url);
    return {
      identity: identityOf(refresh),
      refresh,
      endpoint,
      positions: [position],
      offeredAtMs: this.#clock.monotonicMs(),
      queue: `${refresh.project_id} ${endpoint.ok ? endpoint.origin : ""}`,
      maxConcurrency: refresh.max_concurrency,
      maxRequestsPerSecond: refresh.max_requests_per_second,
      firstQueuedAt: refresh.first_queued_at,
      lastAttempt: refresh.attempt >= this.#rules.maxAttempts,
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

  /** False when none may start now. */
  #startNext(nowMs: number): boolean {
    const work = this.#scheduler.take(nowMs);
    if (work === undefined) return false;
    if (!this.#mayAct(work)) {
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
    if (conclusion.kind === "retry") this.#overflow.putOff(work.queue, conclusion.tier);
    const delivered = this.#deliver(work, conclusion);
    this.proceed();
    return delivered;
  }

  async #deliver(work: Work, conclusion: Conclusion): Promise<void> {
    const delivery = await this.#ports.deliver(conclusion, () => !isLost(work));
    if (delivery === "acknowledged") return this.#finish(work);
    if (delivery === "abandoned") {
      this.#takeBack(work);
      return this.proceed();
    }
    const smaller = conclusion.kind === "outcome" ? withoutBody(conclusion.outcome) : undefined;
    if (smaller === undefined) throw new Error(`the record for ${work.identity} is too large for its topic`);
    return this.#deliver(work, { kind: "outcome", outcome: smaller });
  }

  #finish(work: Work): void {
    this.#finished.add(work.identity);
    this.#leave(work, { moved: false });
    this.proceed();
  }

  #leave(work: Work, how: { readonly moved: boolean }): void {
    this.#underWay.delete(work.identity);
    for (const position of work.positions) this.#leaveAt(position, how);
  }

  /** This place in the log is done with. */
  #leaveAt(position: Position, how: { readonly moved: boolean }): void {
    this.#overflow.left(position, how);
    this.#ports.finish(position);
  }

  /** Assigned to us again while its delivery was given up: the record that came back counts on this work. */
  #takeBack(work: Work): void {
    if (isLost(work)) this.#forget([work]);
    else this.#scheduler.offer(work, this.#clock.monotonicMs());
  }

  #moveAll(moves: readonly Move[]): void {
    for (const move of moves) this.#settle(this.#move(move));
  }

  /** What was moved is not remembered as finished: it comes back under the same identity, to be called. */
  async #move(move: Move): Promise<void> {
    const { works, tier } = move;
    const refreshes = works.map(({ refresh }) => refresh);
    // One queue's partitions have one number, and one member has them all: the first record speaks for the others.
    const [first] = works;
    const wanted = (): boolean => !this.#stopping && !works.some(isLost) && first !== undefined && this.#mayAct(first);
    const moved = works.map((work) => ({ work, from: work.positions }));
    const delivery = await this.#ports.move(refreshes, tier, wanted);
    if (delivery === "too_large") throw new Error(`a record is too large for ${tier.baseName} and came from a topic like it`);
    if (delivery === "acknowledged") {
      for (const { work, from } of moved) this.#leaveAsMoved(work, from);
      this.#ports.report.moved(move);
    } else {
      this.#overflow.undo(move);
      for (const work of works) this.#takeBack(work);
    }
    this.proceed();
  }

  /**
   * What joined it since is not finished by the move: it may be the moved record itself. It is back before the acknowledgement when
   * that took longer than the tier's delay, as when a broker fails in the middle of a long move.
   */
  #leaveAsMoved(work: Work, from: readonly Position[]): void {
    const joined = work.positions.filter((position) => !from.some((other) => isSamePlace(position, other)));
    work.positions = work.positions.filter((position) => !joined.includes(position));
    this.#leave(work, { moved: true });
    if (joined.length > 0) this.#begin({ ...work, positions: joined, offeredAtMs: this.#clock.monotonicMs() });
  }

  #mayAct(work: Work): boolean {
    return work.positions.some((position) => this.#ports.mayAct(position));
  }

  #forget(works: readonly Work[]): void {
    for (const work of works) this.#underWay.delete(work.identity);
  }

  /** What may start already waits for room or for the lease: not for time. */
  #sleep(nowMs: number): void {
    const startMs = this.#scheduler.nextStartMs() ?? nowMs;
    const lookMs = this.#overflow.nextLookMs() ?? Number.POSITIVE_INFINITY;
    const nextMs = startMs > nowMs ? Math.min(startMs, lookMs) : lookMs;
    if (Number.isFinite(nextMs)) this.#ports.wakeAfter(Math.max(1, Math.ceil(nextMs - nowMs)));
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
