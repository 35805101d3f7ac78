import type { Scheduler } from "../../../../../services/fetcher/core/scheduler.ts";
import type { Call, SimulatedTask, Watcher } from "./world.ts";

/** What must hold in every world at every moment; throws where it does not. */
export class Invariants implements Watcher {
  readonly #scheduler: Scheduler<SimulatedTask>;
  readonly #total: number;
  readonly #waiting = new Set<SimulatedTask>();
  readonly #underWay = new Set<SimulatedTask>();
  readonly #open = new Set<number>();
  readonly #underWayOf = new Map<string, number>();
  /** Starts of tasks that declare a rate, by queue and second that they lie in or after. */
  readonly #declaredStartsMs = new Map<string, number[]>();
  readonly #asleepUntilMs = new Map<string, number>();

  constructor(scheduler: Scheduler<SimulatedTask>, total: number) {
    this.#scheduler = scheduler;
    this.#total = total;
  }

  get openCount(): number {
    return this.#open.size;
  }

  offered(task: SimulatedTask): void {
    this.#waiting.add(task);
    this.#open.add(task.id);
  }

  started(task: SimulatedTask, nowMs: number): void {
    const { queue } = task;
    check(this.#waiting.delete(task), `task ${task.id} was started twice, or never offered`);
    this.#underWay.add(task);
    const underWay = (this.#underWayOf.get(queue) ?? 0) + 1;
    this.#underWayOf.set(queue, underWay);
    check(underWay <= (task.maxConcurrency ?? Number.POSITIVE_INFINITY), `${queue} has ${underWay} calls at once`);
    check(this.#underWay.size <= this.#total, `${this.#underWay.size} calls at once`);
    check(nowMs >= (this.#asleepUntilMs.get(queue) ?? 0), `${queue} was called before its Retry-After`);
    this.#checkRate(task, nowMs);
  }

  idle(nowMs: number): void {
    check(
      this.#scheduler.started === this.#underWay.size,
      `${this.#scheduler.started} started, ${this.#underWay.size} under way`,
    );
    check(this.#scheduler.waiting === this.#waiting.size, `${this.#scheduler.waiting} wait, not ${this.#waiting.size}`);
    const nextMs = this.#scheduler.nextStartMs();
    check(nextMs === undefined || nextMs > nowMs, `a task could have started at ${nextMs}`);
    if (this.#underWay.size === 0 && this.#waiting.size > 0)
      check(nextMs !== undefined, `${this.#waiting.size} tasks wait for nothing`);
  }

  ended({ task, endedMs }: Call, retryAfterMs: number | undefined): void {
    this.#underWay.delete(task);
    this.#underWayOf.set(task.queue, (this.#underWayOf.get(task.queue) ?? 0) - 1);
    if (retryAfterMs === undefined) return;
    this.#asleepUntilMs.set(task.queue, Math.max(this.#asleepUntilMs.get(task.queue) ?? 0, endedMs + retryAfterMs));
  }

  closed({ task }: Call): void {
    check(this.#open.delete(task.id), `task ${task.id} ended twice`);
  }

  #checkRate({ queue, maxRequestsPerSecond }: SimulatedTask, nowMs: number): void {
    if (maxRequestsPerSecond === null) return;
    const starts = this.#declaredStartsMs.get(queue) ?? [];
    starts.push(nowMs);
    this.#declaredStartsMs.set(queue, starts);
    while ((starts[0] ?? nowMs) <= nowMs - 1_000) starts.shift();
    check(starts.length <= maxRequestsPerSecond, `${queue} was called ${starts.length} times in a second`);
  }
}

function check(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
