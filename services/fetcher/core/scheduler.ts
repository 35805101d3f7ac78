import { RateCeiling } from "./rate-ceiling.ts";
import type { CallResult } from "./results.ts";

/** What a scheduler has to know of a call that waits to be made. */
export interface Schedulable {
  /** Project and origin: whose turn it is, and whose capacity. */
  readonly queue: string;
  /** Ceilings that the owner declared; null when none. */
  readonly maxConcurrency: number | null;
  readonly maxRequestsPerSecond: number | null;
  /** When the token was first queued, micros since the epoch: within a queue the oldest goes first. */
  readonly firstQueuedAt: number;
  /** A refusal would fail the token: made only when its host has refused nothing lately. */
  readonly lastAttempt: boolean;
}

/** Decides which call starts when. Times are monotonic milliseconds. */
export interface Scheduler<T extends Schedulable> {
  offer(task: T, nowMs: number): void;
  /** The next task that may start now, counted as started; undefined when none may. */
  take(nowMs: number): T | undefined;
  /** Must follow every take, once. `result` is undefined when no call was made after all. */
  finish(task: T, result: CallResult | undefined, nowMs: number): void;
  /** When a task may start that must wait for nothing but time; undefined when there is none. */
  nextStartMs(): number | undefined;
  /** Removes waiting tasks and gives them back. */
  drop(unwanted: (task: T) => boolean): readonly T[];
  /** How many tasks wait in the queue beyond what it will start in about 2 s, and beyond 1000. */
  surplus(queue: string, nowMs: number): number;
  /** Removes the newest waiting tasks of the queue, newest first, at most so many. */
  shed(queue: string, count: number): readonly T[];
  /** How long a task that joined the end of the queue now would wait for its start: its host's sleep, then those before it. */
  expectedWaitMs(queue: string, nowMs: number): number;
  readonly waiting: number;
  readonly started: number;
}

export interface ConcurrencyLimits {
  /** Calls under way for one project and origin, when its owner allows as many. */
  readonly perQueue: number;
  /** Calls under way in the process. */
  readonly total: number;
}

interface Queue<T> {
  readonly name: string;
  waiting: T[];
  readonly rate: RateCeiling;
  started: number;
}

/** How many queues may lie idle before they are looked through for ones to forget. */
const idleQueues = 1_000;
const keptCount = 1_000;
const assumedCallMs = 100;

/**
 * Fixed concurrency for each queue, one task from each queue in turn. A ceiling is held against all that its queue has under way:
 * collections of one project may declare different ones for the same origin, and the host behind them is one. A rate is kept among
 * the tasks that declare one.
 */
export class FixedScheduler<T extends Schedulable> implements Scheduler<T> {
  readonly #limits: ConcurrencyLimits;
  readonly #queues = new Map<string, Queue<T>>();
  /** Queues that may have a task to start, in the order of their turns. */
  readonly #turns = new Set<Queue<T>>();
  /** Queues whose next task waits for its rate. */
  readonly #paced = new Set<Queue<T>>();
  #waiting = 0;
  #started = 0;

  constructor(limits: ConcurrencyLimits) {
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting;
  }

  get started(): number {
    return this.#started;
  }

  offer(task: T, _nowMs: number): void {
    const queue = this.#queues.get(task.queue) ?? this.#open(task.queue);
    queue.waiting.push(task);
    this.#waiting += 1;
    if (!this.#paced.has(queue)) this.#turns.add(queue);
  }

  take(nowMs: number): T | undefined {
    if (this.#started >= this.#limits.total) return undefined;
    this.#endPacing(nowMs);
    for (const queue of this.#turns) {
      this.#turns.delete(queue);
      const task = this.#startFrom(queue, nowMs);
      if (task !== undefined) {
        this.#turns.add(queue);
        return task;
      }
    }
    return undefined;
  }

  finish(task: T, _result: CallResult | undefined, nowMs: number): void {
    const queue = this.#queues.get(task.queue);
    if (queue === undefined) throw new Error("finished a task that was never taken");
    queue.started -= 1;
    this.#started -= 1;
    if (queue.waiting.length > 0 && !this.#paced.has(queue)) this.#turns.add(queue);
    if (this.#queues.size > idleQueues) this.#forgetIdle(nowMs);
  }

  nextStartMs(): number | undefined {
    if (this.#started >= this.#limits.total) return undefined;
    const times = Array.from(this.#paced, (queue) => queue.rate.nextAtMs());
    return times.length === 0 ? undefined : Math.min(...times);
  }

  drop(unwanted: (task: T) => boolean): readonly T[] {
    const dropped: T[] = [];
    for (const queue of this.#queues.values()) {
      const kept: T[] = [];
      for (const task of queue.waiting) (unwanted(task) ? dropped : kept).push(task);
      queue.waiting = kept;
    }
    this.#waiting -= dropped.length;
    return dropped;
  }

  surplus(queue: string, _nowMs: number): number {
    return Math.max(0, (this.#queues.get(queue)?.waiting.length ?? 0) - keptCount);
  }

  shed(queue: string, count: number): readonly T[] {
    const { waiting = [] } = this.#queues.get(queue) ?? {};
    const shed = waiting.splice(Math.max(0, waiting.length - count)).reverse();
    this.#waiting -= shed.length;
    return shed;
  }

  expectedWaitMs(queue: string, _nowMs: number): number {
    const { waiting = [] } = this.#queues.get(queue) ?? {};
    return (waiting.length / this.#limits.perQueue) * assumedCallMs;
  }

  #open(name: string): Queue<T> {
    const queue: Queue<T> = { name, waiting: [], rate: new RateCeiling(), started: 0 };
    this.#queues.set(name, queue);
    return queue;
  }

  #startFrom(queue: Queue<T>, nowMs: number): T | undefined {
    const task = queue.waiting[0];
    if (task === undefined || queue.started >= Math.min(this.#limits.perQueue, task.maxConcurrency ?? Number.POSITIVE_INFINITY)) {
      return undefined;
    }
    if (task.maxRequestsPerSecond !== null) {
      if (queue.rate.nextAtMs() > nowMs) {
        this.#paced.add(queue);
        return undefined;
      }
      queue.rate.start(task.maxRequestsPerSecond, nowMs);
    }
    queue.waiting.shift();
    queue.started += 1;
    this.#waiting -= 1;
    this.#started += 1;
    return task;
  }

  #endPacing(nowMs: number): void {
    for (const queue of this.#paced) {
      if (queue.rate.nextAtMs() > nowMs) continue;
      this.#paced.delete(queue);
      this.#turns.add(queue);
    }
  }

  /** A queue is kept while its rate still holds back the next start. */
  #forgetIdle(nowMs: number): void {
    for (const queue of this.#queues.values()) {
      const idle = queue.waiting.length === 0 && queue.started === 0 && queue.rate.nextAtMs() <= nowMs;
      if (!idle) continue;
      this.#queues.delete(queue.name);
      this.#turns.delete(queue);
    }
  }
}
