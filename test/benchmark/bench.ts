import type { Reporter } from "../../deploy/local/reporter.ts";
import type { RowResult } from "./measure/report.ts";

/** One line of the benchmark's table of contents. `run` measures; everything it starts goes through `Bench.own`. */
export interface Row {
  /** As it is called on the command line. */
  readonly name: string;
  /** What is compared with what, in one sentence. */
  readonly title: string;
  run(bench: Bench): Promise<RowResult>;
}

/** What a row is given: how often to measure, where to tell of it, and who stops what it started. */
export class Bench {
  readonly rounds: number;
  /** Aborted by Ctrl-C. Long waits have to ask it. */
  readonly signal: AbortSignal;
  readonly #row: string;
  readonly #reporter: Reporter;
  readonly #cleanups = new AsyncDisposableStack();
  #doing = "starting";

  constructor(options: { row: string; rounds: number; signal: AbortSignal; reporter: Reporter }) {
    this.rounds = options.rounds;
    this.signal = options.signal;
    this.#row = options.row;
    this.#reporter = options.reporter;
  }

  /** What is being done, for the line of progress. */
  doing(what: string): void {
    this.#doing = what;
    this.signal.throwIfAborted();
  }

  /** The same for a side's turn in a round; rounds below 0 warm up. */
  turn(side: string, round: number): void {
    this.doing(round < 0 ? `warming up (${side})` : `round ${round + 1} of ${this.rounds}, ${side}`);
  }

  get progress(): string {
    return `${this.#row}: ${this.#doing}`;
  }

  /** A line that stays. */
  tell(text: string): void {
    this.#reporter.line(`${this.#row}: ${text}`);
  }

  /** Waits for what is being started, and closes it at the end of the row, the newest first; also when it is interrupted meanwhile. */
  async own<T>(starting: Promise<T>, close: (thing: T) => Promise<unknown>): Promise<T> {
    if (this.#cleanups.disposed) {
      // Interrupted while the row was still starting things: nobody will close this one but us.
      await close(await starting);
      this.signal.throwIfAborted();
    }
    this.#cleanups.defer(async () => {
      const started = await starting.catch(() => undefined);
      if (started !== undefined) await close(started);
    });
    const thing = await starting;
    this.signal.throwIfAborted();
    return thing;
  }

  close(): Promise<void> {
    return this.#cleanups.disposeAsync();
  }
}
