import type { CallResult } from "../../../../../services/fetcher/core/results.ts";
import type { Schedulable, Scheduler } from "../../../../../services/fetcher/core/scheduler.ts";
import { Events } from "./events.ts";
import type { Answer, Host } from "./hosts.ts";

const deadlineMs = 3_000;
const maxAttempts = 3;
const tiersMs = [2_000, 10_000, 60_000, 600_000];

export interface Tenant {
  /** Project, a space, origin. */
  readonly queue: string;
  readonly host: Host;
  /** There and back. */
  readonly networkMs: number;
  readonly maxConcurrency?: number | null;
  readonly maxRequestsPerSecond?: number | null;
}

export interface SimulatedTask extends Schedulable {
  readonly id: number;
  readonly tenant: Tenant;
  readonly attempt: number;
}

export interface Call {
  readonly task: SimulatedTask;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly status: Answer["status"] | "timeout";
}

export interface Watcher {
  offered?(task: SimulatedTask, nowMs: number): void;
  started?(task: SimulatedTask, nowMs: number): void;
  /** Nothing more may start now. */
  idle?(nowMs: number): void;
  ended?(call: Call, retryAfterMs: number | undefined): void;
  /** The token's outcome. */
  closed?(call: Call): void;
}

/** Drives a scheduler as the pipeline does, with hosts instead of a network and the attempt rules of the specification. */
export class World {
  readonly events = new Events();
  readonly #scheduler: Scheduler<SimulatedTask>;
  readonly #random: () => number;
  readonly #watchers: readonly Watcher[];
  #alarm = 0;
  #count = 0;

  constructor(options: { scheduler: Scheduler<SimulatedTask>; random: () => number; watchers: readonly Watcher[] }) {
    this.#scheduler = options.scheduler;
    this.#random = options.random;
    this.#watchers = options.watchers;
  }

  /** New tokens of a tenant. */
  add(tenant: Tenant, count: number): void {
    for (let added = 0; added < count; added++) {
      this.#offer({
        id: this.#count++,
        tenant,
        attempt: 1,
        queue: tenant.queue,
        maxConcurrency: tenant.maxConcurrency ?? null,
        maxRequestsPerSecond: tenant.maxRequestsPerSecond ?? null,
        firstQueuedAt: Math.round(this.events.nowMs * 1_000),
        lastAttempt: false,
      });
    }
    this.#proceed();
  }

  /** Lets the world go on until then. */
  run(untilMs: number): void {
    this.events.run(untilMs);
  }

  #offer(task: SimulatedTask): void {
    for (const watcher of this.#watchers) watcher.offered?.(task, this.events.nowMs);
    this.#scheduler.offer(task, this.events.nowMs);
  }

  #proceed(): void {
    const { nowMs } = this.events;
    for (let task = this.#scheduler.take(nowMs); task !== undefined; task = this.#scheduler.take(nowMs)) this.#start(task);
    for (const watcher of this.#watchers) watcher.idle?.(nowMs);
    const nextMs = this.#scheduler.nextStartMs();
    const alarm = ++this.#alarm;
    if (nextMs === undefined) return;
    this.events.after(Math.max(1, Math.ceil(nextMs - nowMs)), () => {
      if (alarm === this.#alarm) this.#proceed();
    });
  }

  #start(task: SimulatedTask): void {
    const startedMs = this.events.nowMs;
    const { host, networkMs } = task.tenant;
    for (const watcher of this.#watchers) watcher.started?.(task, startedMs);
    const outMs = networkMs * (0.25 + 0.5 * this.#random());
    this.events.after(outMs, () => {
      const answer = host.arrive(this.events.nowMs);
      const endMs = this.events.nowMs + answer.workMs + (networkMs - outMs);
      const late = endMs - startedMs > deadlineMs;
      this.events.at(late ? startedMs + deadlineMs : endMs, () => this.#end(task, startedMs, late ? "timeout" : answer));
    });
  }

  #end(task: SimulatedTask, startedMs: number, answer: Answer | "timeout"): void {
    const endedMs = this.events.nowMs;
    const status = answer === "timeout" ? answer : answer.status;
    const call = { task, startedMs, endedMs, status };
    const retryAfterMs = answer === "timeout" ? undefined : answer.retryAfterMs;
    for (const watcher of this.#watchers) watcher.ended?.(call, retryAfterMs);
    this.#scheduler.finish(task, resultOf(call, retryAfterMs), endedMs);
    const refused = status === 429 || status === 503;
    if (refused && task.attempt < maxAttempts) this.#retry(task, retryAfterMs ?? 0);
    else for (const watcher of this.#watchers) watcher.closed?.(call);
    this.#proceed();
  }

  #retry(task: SimulatedTask, askedMs: number): void {
    const attempt = task.attempt + 1;
    const waitMs = Math.max(2_000 * 2 ** (task.attempt - 1), askedMs);
    const tierMs = tiersMs.find((delayMs) => delayMs >= waitMs) ?? waitMs;
    this.events.after(tierMs, () => {
      this.#offer({ ...task, attempt, lastAttempt: attempt === maxAttempts });
      this.#proceed();
    });
  }
}

function resultOf({ status, startedMs, endedMs }: Call, retryAfterMs: number | undefined): CallResult {
  const measured = { startedAtMs: startedMs, durationMs: endedMs - startedMs, bodyBytes: 2 };
  if (status === 200) return { ok: true, text: "{}", contentHash: "", ...measured };
  if (status === "timeout") return { ok: false, detail: "timeout", status: null, excerpt: null, ...measured };
  const detail = status === 429 ? "rate_limited" : status === 503 ? "service_unavailable" : "unexpected_status";
  return { ok: false, detail, status, excerpt: "", ...measured, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
