import type { Outlook, Scheduler } from "../../../../services/fetcher/core/scheduler.ts";
import type { Work } from "../../../../services/fetcher/core/work.ts";

export interface ScriptedSchedulerOptions {
  /** Calls under way for one queue; default 10. */
  readonly perQueue?: number;
  /** What each waiting record is taken to cost its host; default 100. */
  readonly msPerRecord?: number;
}

/** As simple as a scheduler can be: the oldest first, queue by queue; one sleep for all hosts. */
export class ScriptedScheduler implements Scheduler<Work> {
  readonly #options: Required<ScriptedSchedulerOptions>;
  readonly #queues = new Map<string, { waiting: Work[]; started: number }>();
  sleepsUntilMs = 0;

  constructor({ perQueue = 10, msPerRecord = 100 }: ScriptedSchedulerOptions) {
    this.#options = { perQueue, msPerRecord };
  }

  get waiting(): number {
    return [...this.#queues.values()].reduce((sum, { waiting }) => sum + waiting.length, 0);
  }

  get started(): number {
    return [...this.#queues.values()].reduce((sum, { started }) => sum + started, 0);
  }

  offer(task: Work): void {
    const queue = this.#queue(task.queue);
    queue.waiting.push(task);
    queue.waiting.sort((a, b) => a.firstQueuedAt - b.firstQueuedAt);
  }

  take(nowMs: number): Work | undefined {
    if (nowMs < this.sleepsUntilMs) return undefined;
    for (const queue of this.#queues.values()) {
      if (queue.started >= this.#options.perQueue || queue.waiting.length === 0) continue;
      queue.started += 1;
      return queue.waiting.shift();
    }
    return undefined;
  }

  finish(task: Work): void {
    this.#queue(task.queue).started -= 1;
  }

  nextStartMs(): number | undefined {
    const may = [...this.#queues.values()].some(({ waiting, started }) => waiting.length > 0 && started < this.#options.perQueue);
    if (!may) return undefined;
    return this.sleepsUntilMs > 0 ? this.sleepsUntilMs : Number.NEGATIVE_INFINITY;
  }

  drop(unwanted: (task: Work) => boolean): readonly Work[] {
    const dropped: Work[] = [];
    for (const queue of this.#queues.values()) {
      dropped.push(...queue.waiting.filter(unwanted));
      queue.waiting = queue.waiting.filter((task) => !dropped.includes(task));
    }
    return dropped;
  }

  shed(name: string, count: number): readonly Work[] {
    const queue = this.#queue(name);
    return queue.waiting.splice(Math.max(0, queue.waiting.length - count)).reverse();
  }

  outlook(queue: string, nowMs: number): Outlook {
    const perSecond = 1_000 / this.#options.msPerRecord;
    return { queue, waiting: this.#queue(queue).waiting.length, perSecond, asleepMs: Math.max(0, this.sleepsUntilMs - nowMs) };
  }

  outlooks(nowMs: number): Outlook[] {
    return [...this.#queues.keys()].map((queue) => this.outlook(queue, nowMs)).filter(({ waiting }) => waiting > 0);
  }

  #queue(name: string): { waiting: Work[]; started: number } {
    const queue = this.#queues.get(name) ?? { waiting: [], started: 0 };
    this.#queues.set(name, queue);
    return queue;
  }
}
