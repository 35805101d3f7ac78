import { systemClock } from "../clock.ts";
import { type ConfigResult, type Environment, summarize } from "../config/config.ts";
import { OperationsServer } from "../http/operations.ts";
import { createLogger, type Logger } from "../logging/logger.ts";
import { Metrics } from "../metrics/metrics.ts";
import { Health, type ServiceContext } from "./context.ts";
import { type ArmedCrash, createCrashPoints, parseCrashPoint } from "./crash-points.ts";
import { StopSequence } from "./stop-sequence.ts";

/** The settings that every service has. */
export interface ProcessConfig {
  readonly LOG_LEVEL: string;
  readonly SHUTDOWN_TIMEOUT_MS: number;
  readonly OPERATIONS_HOST: string;
  readonly OPERATIONS_PORT: number;
}

export interface ServiceDefinition<C extends ProcessConfig> {
  readonly name: string;
  readonly parse: (environment: Environment) => ConfigResult<C>;
  /** Builds everything by plain calls and resolves when the service does its work. */
  readonly run: (config: C, context: ServiceContext) => Promise<void>;
}

type Process = Pick<NodeJS.Process, "env" | "exit" | "kill" | "on" | "pid" | "stderr">;

/**
 * The life of a service process: configuration (every mistake listed, exit 2), operations port, `run`, then a signal: stop in
 * reverse order within SHUTDOWN_TIMEOUT_MS (exit 0, or 1 past it); a second signal, and an uncaught error, exit at once.
 */
export async function runMain<C extends ProcessConfig>(process: Process, service: ServiceDefinition<C>): Promise<void> {
  const parsed = service.parse(process.env);
  const crash = parseCrashPoint(service.name, process.env);
  if (!parsed.ok || !crash.ok) {
    const problems = [...(parsed.ok ? [] : parsed.problems), ...(crash.ok ? [] : [crash.problem])];
    process.stderr.write(`${service.name}: the configuration has mistakes:\n`);
    for (const problem of problems) process.stderr.write(`  ${problem}\n`);
    return process.exit(2);
  }
  const { config } = parsed;
  const logger = createLogger(service.name, config.LOG_LEVEL);
  const stops = new StopSequence(logger);
  const health = new Health();
  const end = endOnce(process, {
    logger,
    stops,
    health,
    timeoutMs: config.SHUTDOWN_TIMEOUT_MS,
  });
  const metrics = new Metrics(service.name);
  const context: ServiceContext = {
    logger,
    metrics,
    clock: systemClock,
    health,
    crashPoints: createCrashPoints(crash.armed, (armed) => crashAt(armed, process)),
    onStop: (name, stop) => stops.add(name, stop),
    fail: (cause) => end(1, cause),
  };
  endOnSignals(process, end, logger);
  try {
    logger.info({ config: summarize(config) }, "service.starting");
    const operations = new OperationsServer(health, metrics);
    stops.add("operations", () => operations.close());
    const port = await operations.listen(config.OPERATIONS_HOST, config.OPERATIONS_PORT);
    logger.info({ port }, "operations.listening");
    await service.run(config, context);
    health.markStarted();
    logger.info("service.started");
  } catch (error) {
    end(1, error);
  }
}

/** Nothing is closed, as by kill -9 from outside. On stderr, which is written at once: the log's last line would be lost. */
function crashAt({ point, nth }: ArmedCrash, process: Process): void {
  process.stderr.write(`crash point ${point} reached, time ${nth}\n`);
  process.kill(process.pid, "SIGKILL");
}

type End = (code: number, cause?: unknown) => void;

function endOnce(
  process: Process,
  parts: {
    logger: Logger;
    stops: StopSequence;
    health: Health;
    timeoutMs: number;
  },
): End {
  let ending = false;
  return (code, cause) => {
    if (cause !== undefined) parts.logger.fatal({ err: cause }, "service.failed");
    if (ending) return;
    ending = true;
    parts.health.markStopping();
    void parts.stops.run(parts.timeoutMs).then((inTime) => process.exit(inTime ? code : 1));
  };
}

function endOnSignals(process: Process, end: End, logger: Logger): void {
  let signals = 0;
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.on(signal, () => {
      signals += 1;
      logger.info({ signal }, "service.stopping");
      if (signals > 1) process.exit(1);
      end(0);
    });
  }
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      logger.fatal({ err: error }, "service.uncaught");
      process.exit(1);
    });
  }
}
