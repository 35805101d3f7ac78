import { systemClock } from "../../services/common/clock.ts";
import type { ServiceContext } from "../../services/common/lifecycle/context.ts";
import { Health } from "../../services/common/lifecycle/context.ts";
import { noCrashPoints } from "../../services/common/lifecycle/crash-points.ts";
import type { Logger } from "../../services/common/logging/logger.ts";
import type { Metrics } from "../../services/common/metrics/metrics.ts";
import type { Owner } from "./time/planned-event.ts";

export type ServiceName = "splitter" | "fetcher" | "aggregator";

export interface ProcessOptions {
  readonly name: string;
  readonly service: ServiceName;
  readonly skewMs: number;
  readonly run: (context: ServiceContext) => Promise<void>;
  /** A log line, or a step of its life. */
  readonly trace: (line: string, fields?: object) => void;
  readonly onFail: (cause: unknown) => void;
}

/** One process of a service, from its start to its end. */
export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly service: ServiceName;
  readonly skewMs: number;
  alive = true;
  stoppedUntilMs = 0;
  readonly #options: ProcessOptions;
  readonly #stops: (() => Promise<void>)[] = [];

  constructor(options: ProcessOptions) {
    this.#options = options;
    this.name = options.name;
    this.service = options.service;
    this.skewMs = options.skewMs;
  }

  /** Must be called in an event of its own. */
  start(): void {
    this.#options.trace("started");
    void this.#options.run(this.#context()).catch((error) => this.#fail(error));
  }

  /** SIGTERM: resolves when every step has ended. Must be called in an event of its own. */
  async stop(): Promise<void> {
    this.#options.trace("stops");
    for (let step = this.#stops.pop(); step !== undefined; step = this.#stops.pop()) await step();
    this.end("stopped");
  }

  /** kill -9 when nothing else is said. */
  end(how = "killed"): void {
    if (!this.alive) return;
    this.#options.trace(how);
    this.alive = false;
  }

  #fail(cause: unknown): void {
    if (!this.alive) return;
    this.#options.trace("failed", { cause: String(cause) });
    this.alive = false;
    this.#options.onFail(cause);
  }

  #context(): ServiceContext {
    return {
      logger: tracingLogger(this.#options.trace),
      metrics: silentMetrics,
      clock: systemClock,
      health: new Health(),
      crashPoints: noCrashPoints,
      onStop: (_name, stop) => void this.#stops.push(stop),
      fail: (cause) => this.#fail(cause),
    };
  }
}

function tracingLogger(trace: ProcessOptions["trace"]): Logger {
  const line = (fields: object, event: string): void => trace(event, fields);
  const logger = { isLevelEnabled: () => false, trace() {}, debug() {}, info: line, warn: line, error: line, fatal: line };
  // What the services use of pino.
  return logger as unknown as Logger;
}

const instrument = { inc() {}, set() {}, observe() {}, zero() {}, startTimer: () => () => 0 };
// What the services use of it; nothing here is counted.
const silentMetrics = {
  counter: () => instrument,
  gauge: () => instrument,
  duration: () => instrument,
} as unknown as Metrics;
