import { type Program, startProgram } from "./programs/program.ts";

export interface LoadTarget {
  readonly port: number;
  /** Whole requests as they go over the wire; sent in turn, again from the first. */
  readonly requests: readonly string[];
}

export interface LoadFigures {
  readonly answered: number;
  readonly seconds: number;
  /** From the instant at which a request was to be sent, not from when it could be: a stall counts for all who wait. */
  readonly latenciesMs: readonly number[];
  /** Share of its processor that the generator used. */
  readonly cpuShare: number;
}

/** Sends requests that are signed already, from a process of its own. */
export class LoadGenerator {
  readonly #program: Program;

  constructor(options: { cpu?: number } = {}) {
    this.#program = startProgram(new URL("api-load-program.ts", import.meta.url), options);
  }

  get pid(): number {
    return this.#program.pid;
  }

  aim(target: LoadTarget): Promise<void> {
    return this.#program.call("aim", target);
  }

  /** Each connection sends its next request when the last one is answered. Rejects when an answer is not 2xx. */
  saturate(load: { connections: number; seconds: number }): Promise<LoadFigures> {
    return this.#program.call("saturate", load);
  }

  /** Requests arrive by chance (Poisson), this many a second on average, whatever the answers do. */
  arrive(load: { perSecond: number; seconds: number }): Promise<LoadFigures> {
    return this.#program.call("arrive", load);
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}
