import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const serviceNames = ["registry", "ingress", "splitter", "fetcher", "aggregator"] as const;
export type ServiceName = (typeof serviceNames)[number];

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One service as a child process, addressed by its pid alone. */
export interface ServiceProcess {
  readonly name: ServiceName;
  readonly pid: number;
  /** The last lines it printed, newest last. */
  readonly output: readonly string[];
  /** Resolves when the process is gone and its output is read. */
  readonly exited: Promise<Exit>;
  isRunning(): boolean;
  /** The port it bound for a purpose, once it has said so in its log. */
  port(event: string): number | undefined;
  /** Resolves when /readyz answers 200. Rejects, with the last of the output, when it ends first or is not ready in time. */
  ready(withinMs?: number): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL when that has not ended it in time. Resolves with how it ended. */
  stop(withinMs?: number): Promise<Exit>;
}

export interface ServiceProcessOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly onLine?: (line: string) => void;
  /**
   * A process group of its own: Ctrl-C in the terminal then reaches only whoever started it, who stops the services in order.
   * Without, it reaches everybody, and nobody outlives a test run that is interrupted.
   */
  readonly ownGroup?: boolean;
}

const projectFolder = new URL("../..", import.meta.url).pathname;
const keptLineCount = 200;

/**
 * As the image starts them. Left to itself, V8 lets the old generation grow to four times what is alive, and a fetcher at work to
 * 450 MiB: twice is enough. The young generation needs its 32 MiB: with 16, works that wait are copied so often before they are old that
 * a token costs a fifth more.
 */
export const nodeFlags = ["--no-warnings", "--max-semi-space-size=32", "--heap-growing-percent=100"];

/** For glibc, as in the image. With an arena for each thread, and a threshold that grows, it keeps 20 MiB and more that a burst has freed. */
export const nodeEnvironment = { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "131072" };

/** Starts `node services/<name>/main.ts` with exactly this environment and what a process needs of ours. */
export function startService(name: ServiceName, options: ServiceProcessOptions): ServiceProcess {
  const { environment, onLine, ownGroup = false } = options;
  const { PATH = "", HOME = "", TZ = "" } = process.env;
  const child = spawn(process.execPath, [...nodeFlags, `services/${name}/main.ts`], {
    cwd: projectFolder,
    env: { PATH, HOME, TZ, ...nodeEnvironment, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: ownGroup,
  });
  const leaveNobodyBehind = () => child.kill("SIGKILL");
  process.once("exit", leaveNobodyBehind);
  child.once("exit", () => process.removeListener("exit", leaveNobodyBehind));
  return new RunningService(name, child, { onLine, host: environment.OPERATIONS_HOST ?? "127.0.0.1" });
}

class RunningService implements ServiceProcess {
  readonly name: ServiceName;
  readonly output: string[] = [];
  readonly exited: Promise<Exit>;
  readonly #child: ChildProcess;
  readonly #ports = new Map<string, number>();
  readonly #host: string;
  #exit: Exit | undefined;

  constructor(name: ServiceName, child: ChildProcess, options: { onLine: ((line: string) => void) | undefined; host: string }) {
    this.name = name;
    this.#child = child;
    this.#host = options.host;
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        this.#keep(line);
        options.onLine?.(line);
      });
    }
    this.exited = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        this.#exit = { code, signal };
      });
      child.once("close", (code, signal) => resolve({ code, signal }));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  isRunning(): boolean {
    return this.#exit === undefined;
  }

  port(event: string): number | undefined {
    return this.#ports.get(event);
  }

  async ready(withinMs = 60_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    let last = "";
    while (performance.now() < deadline) {
      if (!this.isRunning()) throw this.#problem(`ended before it was ready (${describe(this.#exit)})`);
      last = await this.#unreadiness();
      if (last === "") return;
      await sleep(100);
    }
    throw this.#problem(`was not ready within ${withinMs} ms (${last})`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async stop(withinMs = 20_000): Promise<Exit> {
    const patience = new AbortController();
    this.kill("SIGTERM");
    // A process that was paused sees the first signal only when it goes on.
    this.kill("SIGCONT");
    const killLater = sleep(withinMs, undefined, { signal: patience.signal }).then(
      () => this.kill("SIGKILL"),
      () => undefined,
    );
    const exit = await this.exited;
    patience.abort();
    await killLater;
    return exit;
  }

  /** Why it is not ready; empty when it is. */
  async #unreadiness(): Promise<string> {
    const port = this.#ports.get("operations.listening");
    if (port === undefined) return "it has no operations port yet";
    try {
      const answer = await fetch(`http://${this.#host}:${port}/readyz`, { signal: AbortSignal.timeout(2_000) });
      const text = await answer.text();
      return answer.ok ? "" : text;
    } catch (error) {
      return String(error);
    }
  }

  #keep(line: string): void {
    this.output.push(line);
    if (this.output.length > keptLineCount) this.output.shift();
    const bound = /"port":(\d+).*"event":"([a-z_]+\.listening)"/.exec(line);
    if (bound?.[1] !== undefined && bound[2] !== undefined) this.#ports.set(bound[2], Number(bound[1]));
  }

  #problem(what: string): ServiceProblem {
    return new ServiceProblem(this, what);
  }
}

/** A service that does not come up. The message carries its last words; `summary` leaves them out. */
export class ServiceProblem extends Error {
  override readonly name = "ServiceProblem";
  readonly service: ServiceName;
  readonly summary: string;

  constructor({ name, pid, output }: ServiceProcess, what: string) {
    const summary = `${name} (process ${pid}) ${what}`;
    super(`${summary}; its last lines:\n${output.slice(-30).join("\n")}`);
    this.service = name;
    this.summary = summary;
  }
}

export function describe(exit: Exit | undefined): string {
  if (exit === undefined) return "running";
  return exit.signal === null ? `exit code ${exit.code}` : `signal ${exit.signal}`;
}
