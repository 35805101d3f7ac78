import type { Clock } from "../../services/common/clock.ts";
import { systemClock } from "../../services/common/clock.ts";
import { Health, type ServiceContext } from "../../services/common/lifecycle/context.ts";
import { noCrashPoints } from "../../services/common/lifecycle/crash-points.ts";
import { StopSequence } from "../../services/common/lifecycle/stop-sequence.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";

/** The surroundings of a service that a test runs in its own process: `await run(config, context)`, then `await stop()`. */
export interface TestServiceContext extends ServiceContext {
  /** What the service gave to `fail`, in order; empty while all is well. */
  readonly failures: readonly unknown[];
  /** Every log line so far, parsed. */
  readonly logs: readonly Readonly<Record<string, unknown>>[];
  /** The graceful stop, as the process would do it. Throws when a step fails or it is not over in time. */
  stop(): Promise<void>;
}

export function createServiceContext(
  service: string,
  options: { clock?: Clock; logLevel?: string; stopWithinMs?: number } = {},
): TestServiceContext {
  const logs: Record<string, unknown>[] = [];
  const failures: unknown[] = [];
  const logger = createLogger(service, options.logLevel ?? "debug", { write: (line) => void logs.push(JSON.parse(line)) });
  const stops = new StopSequence(logger);
  const health = new Health();
  return {
    logger,
    metrics: new Metrics(service),
    clock: options.clock ?? systemClock,
    health,
    crashPoints: noCrashPoints,
    failures,
    logs,
    onStop: (name, stop) => stops.add(name, stop),
    fail: (cause) => void failures.push(cause),
    async stop() {
      health.markStopping();
      if (await stops.run(options.stopWithinMs ?? 60_000)) return;
      throw new Error(`${service} did not stop well: ${JSON.stringify(logs.slice(-10))}`);
    },
  };
}
