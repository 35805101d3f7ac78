import { type ChildProcess, spawn, spawnSync } from "node:child_process";

/** A process of the benchmark beside this one, spoken to over Node's channel between parent and child. */
export interface Program {
  readonly pid: number;
  /** Rejects with the other side's reason, or when it ends before it has answered. */
  call<T>(method: string, params?: unknown): Promise<T>;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  /** Processor it is kept on where `taskset` exists; everywhere else the scheduler places it. */
  readonly cpu?: number | undefined;
}

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly problem?: string;
}

/** Whether processes can be kept on a processor here. */
export const canPin = spawnSync("taskset", ["-V"]).status === 0;

/** Starts a TypeScript file that calls `serveProgram`. */
export function startProgram(file: URL, { cpu }: ProgramOptions = {}): Program {
  const node = [process.execPath, "--no-warnings", file.pathname];
  const [command = "", ...args] = canPin && cpu !== undefined ? ["taskset", "-c", String(cpu), ...node] : node;
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  return new ChildProgram(child);
}

class ChildProgram implements Program {
  readonly #child: ChildProcess;
  readonly #open = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  readonly #exited: Promise<void>;
  #count = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
    child.on("message", (message) => this.#take(message as Answer));
    this.#exited = new Promise((resolve) => {
      child.once("exit", () => {
        for (const { reject } of this.#open.values()) reject(new Error(`a program of the benchmark (${this.pid}) ended`));
        resolve();
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  call<T>(method: string, params?: unknown): Promise<T> {
    this.#count += 1;
    const id = this.#count;
    return new Promise<T>((resolve, reject) => {
      this.#open.set(id, { resolve: (result) => resolve(result as T), reject });
      this.#child.send({ id, method, params }, (error) => error && reject(error));
    });
  }

  /** Without its channel it ends. */
  async stop(): Promise<void> {
    if (this.#child.connected) this.#child.disconnect();
    await this.#exited;
  }

  #take({ id, result, problem }: Answer): void {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (problem === undefined) open?.resolve(result);
    else open?.reject(new Error(problem));
  }
}

/** The child's side: answers calls, and ends with its parent. */
export function serveProgram(methods: Readonly<Record<string, (params: never) => unknown>>): void {
  process.on("disconnect", () => process.exit(0));
  process.on("message", async ({ id, method, params }: { id: number; method: string; params: never }) => {
    try {
      process.send?.({ id, result: await methods[method]?.(params) });
    } catch (error) {
      process.send?.({ id, problem: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
}
