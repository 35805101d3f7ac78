import type { Clock } from "../clock.ts";
import type { Logger } from "../logging/logger.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { CrashPoints } from "./crash-points.ts";

/** What a service's `run` gets from its surroundings. */
export interface ServiceContext {
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly health: Health;
  readonly crashPoints: CrashPoints;
  /** Registers a step of the graceful stop; steps run in reverse order of registration. */
  onStop(name: string, stop: () => Promise<void>): void;
  /** Something that cannot be recovered in this process: log it, stop, exit 1. */
  fail(cause: unknown): void;
}

/** A named question whose answer is part of /livez or /readyz: undefined is well, a text says what is wrong. */
export type HealthCheck = () => string | undefined | Promise<string | undefined>;

/** Live: the event loop and progress only, never dependencies. Ready: able to do the service's work now. */
export class Health {
  readonly #live = new Map<string, HealthCheck>();
  readonly #ready = new Map<string, HealthCheck>();
  #started = false;
  #stopping = false;

  addLiveCheck(name: string, check: HealthCheck): void {
    this.#live.set(name, check);
  }

  addReadyCheck(name: string, check: HealthCheck): void {
    this.#ready.set(name, check);
  }

  markStarted(): void {
    this.#started = true;
  }

  markStopping(): void {
    this.#stopping = true;
  }

  get started(): boolean {
    return this.#started;
  }

  live(): Promise<Record<string, string>> {
    return failing(this.#live);
  }

  async ready(): Promise<Record<string, string>> {
    if (this.#stopping) return { service: "stopping" };
    if (!this.#started) return { service: "starting" };
    return failing(this.#ready);
  }
}

async function failing(checks: ReadonlyMap<string, HealthCheck>): Promise<Record<string, string>> {
  const answers = await Promise.all([...checks].map(async ([name, check]) => [name, await check()] as const));
  return Object.fromEntries(answers.filter((answer): answer is [string, string] => answer[1] !== undefined));
}
