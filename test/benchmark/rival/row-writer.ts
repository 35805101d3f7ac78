import type { Outcome } from "../../../services/aggregator/core/outcome.ts";
import type { TokenStore } from "../../../services/aggregator/core/ports.ts";
import { noContent } from "../../../services/aggregator/core/token.ts";
import type { RefreshCounts } from "./refresh-counts.ts";

export interface RowWriterOptions {
  readonly tokens: Pick<TokenStore, "write">;
  readonly counts: RefreshCounts;
  readonly flushRows: number;
  readonly flushAfterMs: number;
}

interface Waiting {
  readonly outcome: Outcome;
  resolve(): void;
  reject(cause: unknown): void;
}

const neverAborted = new AbortController().signal;

/**
 * The rows of the jobs that end at about the same time, written in the same batches as the pipeline writes them, by the same code.
 * A job ends when its row and its place in the count of its refresh are there.
 */
export class RowWriter {
  readonly #options: RowWriterOptions;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RowWriterOptions) {
    this.#options = options;
  }

  write(outcome: Outcome): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ outcome, resolve, reject });
      if (this.#waiting.length >= this.#options.flushRows) this.#flush();
      else this.#timer ??= setTimeout(() => this.#flush(), this.#options.flushAfterMs);
    });
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const flushed = this.#waiting;
    this.#waiting = [];
    this.#store(flushed.map(({ outcome }) => outcome)).then(
      () => {
        for (const { resolve } of flushed) resolve();
      },
      (cause: unknown) => {
        for (const { reject } of flushed) reject(cause);
      },
    );
  }

  /** The row first: a refresh whose count is full has all its rows. */
  async #store(outcomes: readonly Outcome[]): Promise<void> {
    const writes = outcomes.flatMap((outcome) => {
      const { result, version } = outcome;
      if (!result.ok) return [];
      const head = { ...noContent, version, contentHash: result.contentHash };
      return [{ outcome, content: { metadata: result.metadata, head } }];
    });
    await this.#options.tokens.write(writes, neverAborted);
    await this.#options.counts.add(outcomes);
  }
}
