import { type Clock, microsFromMs } from "../../common/clock.ts";
import type { DecodedRecord, TopicPartition } from "../../common/kafka/contracts.ts";
import type { TokenOutcome, TokenRefresh } from "../../common/messages/records.ts";
import { type AttemptRules, type Conclusion, conclude, invalidity } from "./attempt-rules.ts";
import { FinishedWork } from "./finished-work.ts";
import { closedByDeadline, closedByLastAttempt, failed, withoutBody } from "./outcomes.ts";
import { type Move, Overflow } from "./overflow.ts";
import type { Delivery, PipelinePorts } from "./ports.ts";
import type { CallFailed, CallResult } from "./results.ts";
import { Routes } from "./routes.ts";
import type { Scheduler } from "./scheduler.ts";
import { UnderWay } from "./under-way.ts";
import { Unsettled } from "./unsettled.ts";
import { isLost, isSamePlace, nameOf, type Position, Work } from "./work.ts";

/** How long to wait for a lease that has lapsed: it comes back with the next good heartbeat. */
const leaseRetryMs = 100;
/** So many records are taken over before the next look at what may start: the first calls need not wait for a whole batch. */
const admittedAtOnce = 50;

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
  readonly #underWay = new UnderWay();
  readonly #routes: Routes;
  readonly #finished: FinishedWork;
  readonly #unsettled: Unsettled;
  #stopping = false;
  #proceedsSoon = false;

  constructor(options: { scheduler: Scheduler<Work>; rules: AttemptRules; clock: Clock; ports: PipelinePorts }) {
    this.#scheduler = options.scheduler;
    this.#rules = options.rules;
    this.#clock = options.clock;
    this.#ports = options.ports;
    this.#overflow = new Overflow({ scheduler: options.scheduler, tiers: options.rules.tiers, ports: options.ports });
    this.#finished = new FinishedWork(() => options.clock.monotonicMs());
    this.#unsettled = new Unsettled(options.ports.fail);
    this.#routes = new Routes((url) => options.ports.endpointOf(url));
  }

  /** Records of one partition, in order. */
  take(records: readonly DecodedRecord<TokenRefresh>[]): void {
    const [partition] = records;
    const works: Work[] = [];
    for (const record of records) {
      works.push(this.#admit(record));
      if (works.length % admittedAtOnce === 0) this.proceed();
    }
    if (partition === undefined || this.#stopping) return;
    this.#moveAll(this.#overflow.taken(partition, works, this.#clock.monotonicMs()));
    this.proceed();
  }

  /** Starts every call that may start now, and moves what has to leave. */
  proceed(): void {
    if (this.#stopping) return;
    const nowMs = this.#clock.monotonicMs();
    this.#moveAll(this.#overflow.look(nowMs));
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
    for (const work of this.#underWay) {
      if (!work.positions.every(isKept)) work.positions = work.positions.filter(isKept);
    }
    this.#forget(this.#scheduler.drop(isLost));
    this.#overflow.lost(partitions);
  }

  /** Starts nothing more; resolves when all that was started is acknowledged or abandoned, and what waits stands in nobody's way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#overflow.stop();
    const waiting = this.#scheduler.drop(() => true);
    await this.#unsettled.settled();
    await this.#clear(waiting.filter((work) => this.#overflow.behindCalled(work)));
    this.#forget(waiting);
  }

  /** These hold the low-water mark back below calls that were made: left there, the calls would be made again after the start. */
  async #clear(works: readonly Work[]): Promise<void> {
    const [tier] = this.#rules.tiers;
    if (tier === undefined || works.length === 0) return;
    const refreshes = works.map(({ refresh }) => refresh);
    const wanted = (): boolean => works.every((work) => this.#mayAct(work));
    const delivery = await this.#ports.move(refreshes, tier, wanted);
    if (delivery === "acknowledged") for (const work of works) this.#leave(work, { moved: true });
  }

  #admit(record: DecodedRecord<TokenRefresh>): Work {
    const { topic, partition, offset, value: refresh } = record;
    const position = { topic, partition, offset };
    const work = new Work(refresh, {
      route: this.#routes.of(refresh),
      positions: [position],
      offeredAtMs: this.#clock.monotonicMs(),
      lastAttempt: refresh.attempt >= this.#rules.maxAttempts,
    });
    const invalid = invalidity(refresh, this.#rules);
    const original = invalid === undefined ? this.#underWay.get(refresh) : undefined;
    if (invalid !== undefined) this.#bury(record, invalid);
    else if (original !== undefined) this.#join(original, position);
    else if (this.#finished.has(refresh)) this.#skip(position);
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

  #bury(record: DecodedRecord<TokenRefresh>, reason: string): void {
    this.#unsettled.track(this.#ports.bury(record, reason), () => this.#leaveAt(record, { moved: false }));
  }

  #begin(work: Work): void {
    this.#underWay.add(work);
    const closing = this.#closing(work);
    if (closing === undefined) this.#scheduler.offer(work, work.offeredAtMs);
    else this.#deliver(work, closing);
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
    this.#start(work);
    return true;
  }

  #start(work: Work): void {
    const { refresh, endpoint } = work;
    const nowMs = this.#clock.monotonicMs();
    const closing = this.#closing(work);
    if (closing !== undefined || !endpoint.ok) {
      this.#scheduler.finish(work, undefined, nowMs);
      if (closing !== undefined) this.#deliver(work, closing);
      return;
    }
    this.#ports.report.started(work, nowMs - work.offeredAtMs);
    const calling = this.#ports.call(refresh, endpoint, () => this.#mayAct(work));
    this.#unsettled.track(calling, (result) => (result === "abandoned" ? this.#notCalled(work) : this.#called(work, result)));
  }

  /** The lease lapsed, or the partition went, while the call waited for a connection. */
  #notCalled(work: Work): void {
    this.#scheduler.finish(work, undefined, this.#clock.monotonicMs());
    this.#takeBack(work);
    this.#ports.wakeAfter(leaseRetryMs);
  }

  #called(work: Work, result: CallResult): void {
    this.#scheduler.finish(work, result, this.#clock.monotonicMs());
    const conclusion = conclude(work.refresh, result, this.#rules);
    this.#ports.report.attempted(work, result, conclusion);
    if (conclusion.kind === "retry") this.#overflow.putOff(work.queue, conclusion.tier);
    this.#deliver(work, conclusion);
    this.proceed();
  }

  #deliver(work: Work, conclusion: Conclusion): void {
    const delivering = this.#ports.deliver(conclusion, () => !isLost(work));
    this.#unsettled.track(delivering, (delivery) => this.#delivered(work, conclusion, delivery));
  }

  #delivered(work: Work, conclusion: Conclusion, delivery: Delivery): void {
    if (delivery === "too_large") this.#deliver(work, { kind: "outcome", outcome: smaller(work, conclusion) });
    else {
      if (delivery === "acknowledged") this.#finish(work);
      else this.#takeBack(work);
      this.#proceedSoon();
    }
  }

  #finish(work: Work): void {
    this.#finished.add(work.refresh);
    this.#leave(work, { moved: false });
  }

  #leave(work: Work, how: { readonly moved: boolean }): void {
    this.#underWay.delete(work.refresh);
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
    for (const move of moves) this.#move(move);
  }

  /** What was moved is not remembered as finished: it comes back as the same turn, to be called. */
  #move(move: Move): void {
    const { works, tier } = move;
    const refreshes = works.map(({ refresh }) => refresh);
    // One queue's partitions have one number, and one member has them all: the first record speaks for the others.
    const [first] = works;
    const wanted = (): boolean => !this.#stopping && !works.some(isLost) && first !== undefined && this.#mayAct(first);
    const places = works.map(({ positions }) => positions);
    this.#unsettled.track(this.#ports.move(refreshes, tier, wanted), (delivery) => this.#moved(move, places, delivery));
  }

  /** `places`: where each work stood in the log when the move began. */
  #moved(move: Move, places: readonly (readonly Position[])[], delivery: Delivery): void {
    const { works, tier } = move;
    if (delivery === "too_large") throw new Error(`a record is too large for ${tier.baseName} and came from a topic like it`);
    if (delivery === "acknowledged") {
      for (const [index, work] of works.entries()) this.#leaveAsMoved(work, places[index] ?? []);
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
    const joined = work.positions === from ? [] : work.positions.filter((one) => !from.some((other) => isSamePlace(one, other)));
    if (joined.length > 0) work.positions = work.positions.filter((position) => !joined.includes(position));
    this.#leave(work, { moved: true });
    if (joined.length === 0) return;
    const { refresh, route, lastAttempt } = work;
    this.#begin(new Work(refresh, { route, lastAttempt, positions: joined, offeredAtMs: this.#clock.monotonicMs() }));
  }

  #mayAct(work: Work): boolean {
    return work.positions.some((position) => this.#ports.mayAct(position));
  }

  #forget(works: readonly Work[]): void {
    for (const work of works) this.#underWay.delete(work.refresh);
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

  /** One acknowledgement finishes many at once: they are followed by one look at what may start. */
  #proceedSoon(): void {
    if (this.#proceedsSoon) return;
    this.#proceedsSoon = true;
    this.#unsettled.track(Promise.resolve(), () => {
      this.#proceedsSoon = false;
      this.proceed();
    });
  }
}

function smaller({ refresh }: Work, conclusion: Conclusion): TokenOutcome {
  const outcome = conclusion.kind === "outcome" ? withoutBody(conclusion.outcome) : undefined;
  if (outcome === undefined)
    throw new Error(`the record for ${refresh.refresh_id}/${refresh.ordinal} is too large for its topic`);
  return outcome;
}

const nothingReceived = { ok: false, status: null, excerpt: null, durationMs: 0, bodyBytes: 0 } as const;
