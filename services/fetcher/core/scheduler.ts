import type { CallResult } from "./results.ts";

/** What a scheduler has to know of a call that waits to be made. */
export interface Schedulable {
  /** Project, a space, origin: whose turn it is, and whose capacity. What is learned of an origin is shared by all its projects. */
  readonly queue: string;
  /** Ceilings that the owner declared; null when none. */
  readonly maxConcurrency: number | null;
  readonly maxRequestsPerSecond: number | null;
  /** When the token was first queued, micros since the epoch: within a queue the oldest goes first. */
  readonly firstQueuedAt: number;
  /** A refusal would fail the token: made only when its host has refused nothing lately. */
  readonly lastAttempt: boolean;
}

/** What waits in a queue, and how soon its host will do it. */
export interface Outlook {
  readonly queue: string;
  readonly waiting: number;
  /** Tasks that its host is taken to do in a second when it is awake; above 0. */
  readonly perSecond: number;
  /** Until its host is called again. */
  readonly asleepMs: number;
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
  /** Removes the newest waiting tasks of the queue, newest first, at most so many. */
  shed(queue: string, count: number): readonly T[];
  outlook(queue: string, nowMs: number): Outlook;
  /** Of every queue in which something waits. */
  outlooks(nowMs: number): Iterable<Outlook>;
  readonly waiting: number;
  readonly started: number;
}
