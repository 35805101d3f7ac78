import { type Program, startProgram } from "./program.ts";

/** Where the naive loop puts its rows: into the table of the pipeline, under a collection that nobody else has. */
export interface LoopStore {
  readonly collection: string;
  readonly refreshId: string;
}

export interface LoopJob {
  /** As a collection registers it. */
  readonly url: string;
  readonly firstTokenId: number;
  readonly count: number;
  /** Connections, each with one token at a time from the call to what becomes of it. */
  readonly concurrency: number;
  readonly store?: LoopStore;
}

/** Calls and nothing else, in a process of its own: programs/loop-program.ts. */
export class BareLoop {
  readonly #program: Program;

  static async start(options: { cpu?: number; environment?: Readonly<Record<string, string>> } = {}): Promise<BareLoop> {
    const loop = new BareLoop(startProgram(new URL("loop-program.ts", import.meta.url), options));
    const { environment } = options;
    if (environment !== undefined) await loop.#connect(environment);
    return loop;
  }

  private constructor(program: Program) {
    this.#program = program;
  }

  get pid(): number {
    return this.#program.pid;
  }

  /** Resolves with the milliseconds from the first call to the last result; rejects when a token failed. */
  run(job: LoopJob): Promise<number> {
    return this.#program.call("run", job);
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }

  #connect(environment: Readonly<Record<string, string>>): Promise<void> {
    return this.#program.call("connect", {
      contactPoints: (environment.CASSANDRA_CONTACT_POINTS ?? "").split(","),
      dataCenter: environment.CASSANDRA_DATACENTER,
      keyspace: environment.CASSANDRA_KEYSPACE,
    });
  }
}
