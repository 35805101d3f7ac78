import type { CallResult } from "../results.ts";
import type { Outlook, Schedulable, Scheduler } from "../scheduler.ts";
import { HostQueue } from "./host-queue.ts";
import { LearnedHosts } from "./learned-hosts.ts";
import { verdictOf } from "./verdict.ts";
import { WakeTimes } from "./wake-times.ts";

export interface ConcurrencyLimits {
  /** The most calls under way for one project and origin that may be learned. */
  readonly perQueue: number;
  /** Calls under way in the process. */
  readonly total: number;
}

interface StartedTask<T extends Schedulable> {
  readonly queue: HostQueue<T>;
  readonly startedMs: number;
  readonly prepaidMs: number;
  readonly inFlight: number;
}

const startConcurrency = 8;
/** Queues that lie idle are kept as they are, so many of them. */
const idleCount = 1_000;
const shortestTurnMs = 20;

/**
 * Which call starts when. Each queue says from when it may start one; those that may do so now take turns, and a turn is worth as
 * many slot-milliseconds for one as for the other, so that a host that hangs pays for its time. Only they are looked at: sleeping,
 * paced and full queues cost nothing.
 */
export class AdaptiveScheduler<T extends Schedulable> implements Scheduler<T> {
  readonly #limits: ConcurrencyLimits;
  readonly #queues = new Map<string, HostQueue<T>>();
  /** In the order of their turns. */
  readonly #ready = new Set<HostQueue<T>>();
  readonly #wakeTimes = new WakeTimes<HostQueue<T>>();
  /** The one that has been idle longest first. */
  readonly #idle = new Set<HostQueue<T>>();
  readonly #startedTasks = new Map<T, StartedTask<T>>();
  readonly #learned = new LearnedHosts();
  #waiting = 0;
  #meanCallMs = shortestTurnMs;

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get started(): number {
    return this.#startedTasks.size;
  }

  offer(task: T, nowMs: number): void {
    const queue = this.#queues.get(task.queue) ?? this.#open(task.queue, nowMs);
    queue.add(task);
    this.#waiting += 1;
    this.#place(queue, nowMs);
  }

  take(nowMs: number): T | undefined {
    if (this.started >= this.#limits.total) return undefined;
    this.#wakeDue(nowMs);
    for (;;) {
      const queue = this.#next(nowMs);
      if (queue === undefined) return undefined;
      const task = this.#start(queue, nowMs);
      if (task !== undefined) return task;
    }
  }

  finish(task: T, result: CallResult | undefined, nowMs: number): void {
    const started = this.#startedTasks.get(task);
    if (started === undefined) throw new Error("finished a task that was never taken");
    this.#startedTasks.delete(task);
    const { queue, startedMs, inFlight } = started;
    queue.account.finish(started, nowMs);
    if (result === undefined) queue.abandoned(task);
    else {
      const { lastAttempt } = task;
      const retryAfterMs = result.ok ? undefined : result.retryAfterMs;
      const verdict = verdictOf(result);
      queue.ended({ verdict, startedMs, endedMs: nowMs, inFlight, lastAttempt, retryAfterMs });
      if (verdict !== "answered") this.#learned.set(originOf(queue.name), queue.learned, nowMs);
      this.#meanCallMs += (nowMs - startedMs - this.#meanCallMs) / 64;
    }
    this.#place(queue, nowMs);
  }

  nextStartMs(): number | undefined {
    if (this.started >= this.#limits.total) return undefined;
    return this.#ready.size > 0 ? Number.NEGATIVE_INFINITY : this.#wakeTimes.nextMs();
  }

  drop(unwanted: (task: T) => boolean): readonly T[] {
    const dropped: T[] = [];
    for (const queue of this.#queues.values()) {
      const before = dropped.length;
      for (const task of queue.drop(unwanted)) dropped.push(task);
      if (dropped.length > before) this.#lookAgain(queue);
    }
    this.#waiting -= dropped.length;
    return dropped;
  }

  shed(name: string, count: number): readonly T[] {
    const queue = this.#queues.get(name);
    const shed: T[] = [];
    while (shed.length < count) {
      const task = queue?.takeNewest();
      if (task === undefined) break;
      shed.push(task);
    }
    this.#waiting -= shed.length;
    if (queue !== undefined && shed.length > 0) this.#lookAgain(queue);
    return shed;
  }

  outlook(queue: string, nowMs: number): Outlook {
    return this.#queues.get(queue)?.outlook(nowMs) ?? { queue, waiting: 0, perSecond: 1, asleepMs: 0 };
  }

  *outlooks(nowMs: number): Iterable<Outlook> {
    for (const queue of this.#queues.values()) if (queue.waiting > 0) yield queue.outlook(nowMs);
  }

  /** For the operator: what all hosts with work are taken to stand at once, and how many of them are left alone. */
  hosts(nowMs: number): { readonly concurrency: number; readonly asleep: number } {
    let concurrency = 0;
    let asleep = 0;
    for (const queue of this.#queues.values()) {
      if (queue.waiting + queue.started === 0) continue;
      if (queue.asleep(nowMs)) asleep += 1;
      else concurrency += Math.min(queue.concurrency(nowMs), this.#limits.perQueue);
    }
    return { concurrency, asleep };
  }

  #open(name: string, nowMs: number): HostQueue<T> {
    const bounds = { start: Math.min(startConcurrency, this.#limits.perQueue), cap: this.#limits.perQueue };
    const queue = new HostQueue<T>(name, { bounds, learned: this.#learned.get(originOf(name), nowMs) });
    this.#queues.set(name, queue);
    return queue;
  }

  /** Puts a queue where its next start belongs: among those that may, or at its time, or nowhere. */
  #place(queue: HostQueue<T>, nowMs: number): void {
    const atMs = queue.startableAtMs(nowMs);
    if (atMs <= nowMs) {
      this.#wakeTimes.clear(queue);
      this.#ready.add(queue);
      this.#idle.delete(queue);
      return;
    }
    this.#ready.delete(queue);
    if (atMs < Number.POSITIVE_INFINITY) this.#wakeTimes.set(queue, atMs);
    else this.#wakeTimes.clear(queue);
    if (queue.waiting === 0 && queue.started === 0) this.#rest(queue, nowMs);
  }

  /** Tasks were taken out of the queue: another one is its next, or none. */
  #lookAgain(queue: HostQueue<T>): void {
    this.#wakeTimes.clear(queue);
    if (queue.waiting > 0) this.#ready.add(queue);
    else this.#ready.delete(queue);
    if (queue.waiting === 0 && queue.started === 0) this.#idle.add(queue);
  }

  #wakeDue(nowMs: number): void {
    for (let queue = this.#wakeTimes.takeDue(nowMs); queue !== undefined; queue = this.#wakeTimes.takeDue(nowMs)) {
      this.#place(queue, nowMs);
    }
  }

  /** Whose turn it is. It lasts until its credit is used up; then the queue gets the next one, behind all others. */
  #next(nowMs: number): HostQueue<T> | undefined {
    const turnMs = Math.max(shortestTurnMs, this.#meanCallMs);
    let leftInRound = this.#ready.size;
    let leastDebtMs = Number.POSITIVE_INFINITY;
    for (const queue of this.#ready) {
      if (this.#ready.size === 1 || queue.account.creditMs(nowMs) > 0) return queue;
      queue.account.grant(turnMs, nowMs);
      leastDebtMs = Math.min(leastDebtMs, -queue.account.creditMs(nowMs));
      this.#ready.delete(queue);
      this.#ready.add(queue);
      leftInRound -= 1;
      if (leftInRound > 0) continue;
      this.#grantAll(leastDebtMs, nowMs);
      leftInRound = this.#ready.size;
      leastDebtMs = Number.POSITIVE_INFINITY;
    }
    return undefined;
  }

  /** As many rounds at once as it takes until somebody has credit. */
  #grantAll(leastDebtMs: number, nowMs: number): void {
    if (leastDebtMs < 0) return;
    for (const queue of this.#ready) queue.account.grant(leastDebtMs, nowMs);
  }

  #start(queue: HostQueue<T>, nowMs: number): T | undefined {
    const task = queue.startableAtMs(nowMs) <= nowMs ? queue.start(nowMs) : undefined;
    if (task !== undefined) {
      const prepaidMs = queue.meanCallMs;
      queue.account.start(prepaidMs, nowMs);
      this.#startedTasks.set(task, { queue, startedMs: nowMs, prepaidMs, inFlight: queue.started });
      this.#waiting -= 1;
    }
    this.#place(queue, nowMs);
    return task;
  }

  #rest(queue: HostQueue<T>, nowMs: number): void {
    queue.account.reset();
    this.#learned.set(originOf(queue.name), queue.learned, nowMs);
    this.#idle.delete(queue);
    this.#idle.add(queue);
    if (this.#idle.size <= idleCount) return;
    const [oldest] = this.#idle;
    if (oldest === undefined || !oldest.forgettable(nowMs)) return;
    this.#idle.delete(oldest);
    this.#queues.delete(oldest.name);
  }
}

/** A queue's name is its project, a space, and its origin. */
function originOf(queue: string): string {
  return queue.slice(queue.indexOf(" ") + 1);
}
