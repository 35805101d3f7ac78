import { execute } from "../local/execute.ts";
import { logFile } from "../local/folders.ts";
import { StackProblem } from "../local/problem.ts";
import { paint, type Reporter } from "../local/reporter.ts";
import { readSettings } from "../local/settings.ts";
import { developmentEnvironment, operationsPort, requireServicePorts } from "./environment.ts";
import { unlessInterrupted } from "./interruption.ts";
import { ServiceLogs, serviceLogFile, shownPath } from "./service-log.ts";
import { type ServiceName, ServiceProblem, serviceNames } from "./service-process.ts";
import { type RunningServices, startServices } from "./services.ts";
import { ensureStack } from "./stack.ts";

export interface SessionOptions {
  readonly reporter: Reporter;
  readonly signal: AbortSignal;
  /** Takes what has to be undone at the end, in reverse order: services first, then a stack that was started here. */
  readonly cleanups: AsyncDisposableStack;
}

/** Whether the five services answer on their ports: an `npm start` in another terminal. */
export async function servicesRun(): Promise<boolean> {
  const answers = await Promise.all(
    serviceNames.map(async (name) => {
      try {
        const answer = await fetch(`http://127.0.0.1:${operationsPort(name)}/metrics`, { signal: AbortSignal.timeout(2_000) });
        return (await answer.text()).includes(`service="${name}"`);
      } catch {
        return false;
      }
    }),
  );
  return answers.every((yes) => yes);
}

/** Stack up, topics, tables and schemas there, five services ready. */
export async function bringUp({ reporter, signal, cleanups }: SessionOptions): Promise<RunningServices> {
  await requireServicePorts();
  // Not abandoned in the middle: servers that are half started can only be stopped once they are.
  const stack = await ensureStack(reporter);
  if (stack.startedHere) cleanups.defer(() => stack.stop());
  signal.throwIfAborted();
  await reporter
    .during(() => "provisioning", provision())
    .catch((error: unknown) => {
      // Ctrl-C in a terminal ends the command as well.
      signal.throwIfAborted();
      throw error;
    });
  reporter.line("topics, tables and schemas are there");
  signal.throwIfAborted();
  const services = await startAll({ reporter, signal, cleanups });
  reporter.line("all services are ready");
  return services;
}

async function startAll({ reporter, signal, cleanups }: SessionOptions): Promise<RunningServices> {
  const logs = new ServiceLogs((text) => reporter.line(text));
  cleanups.defer(() => logs.close());
  const waiting = new Set<ServiceName>(serviceNames);
  const services = startServices({
    environment: developmentEnvironment,
    onLine: logs.take,
    onReady: ({ name, pid }) => {
      waiting.delete(name);
      reporter.line(
        `${name.padEnd(10)} ${paint(process.stderr, "green", "ready")} (process ${pid}, log ${shownPath(serviceLogFile(name))})`,
      );
    },
  });
  cleanups.defer(() => reporter.during(() => "stopping the services", services.stop()));
  const ready = reporter.during(() => `waiting for ${[...waiting].join(", ")},`, services.ready);
  await unlessInterrupted(signal, ready).catch((error: unknown) => {
    // Its last words were shown as they came.
    if (!(error instanceof ServiceProblem)) throw error;
    throw new StackProblem(`${error.summary}; read ${shownPath(serviceLogFile(error.service))}`);
  });
  logs.showWarnings();
  return services;
}

/** The same command as in production. */
async function provision(): Promise<void> {
  const log = logFile(readSettings(), "provision");
  const script = new URL("../provision.ts", import.meta.url).pathname;
  const refusals: string[] = [];
  const code = await execute({
    file: process.execPath,
    arguments: ["--no-warnings", script],
    environment: developmentEnvironment(),
    log,
    onLine: (line) => {
      if (line.startsWith("refused: ")) refusals.push(line);
    },
  });
  if (code !== 0)
    throw new StackProblem([...refusals, `provisioning failed with exit code ${code}; read ${shownPath(log)}`].join("\n"));
}
