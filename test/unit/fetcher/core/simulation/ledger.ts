import type { Call, SimulatedTask, Watcher } from "./world.ts";

/** What came of the calls of one queue, by second. */
export class Ledger implements Watcher {
  readonly taken: number[] = [];
  readonly refused: number[] = [];
  readonly waitsMs: number[] = [];
  failedByRefusal = 0;
  timedOut = 0;
  closedCount = 0;
  #offeredMs = new Map<SimulatedTask, number>();
  readonly #queue: string | undefined;

  /** Of all queues when none is named. */
  constructor(queue?: string) {
    this.#queue = queue;
  }

  offered(task: SimulatedTask, nowMs: number): void {
    if (this.#counts(task)) this.#offeredMs.set(task, nowMs);
  }

  ended({ task, startedMs, endedMs, status }: Call): void {
    if (!this.#counts(task)) return;
    this.waitsMs.push(endedMs - (this.#offeredMs.get(task) ?? startedMs));
    this.#offeredMs.delete(task);
    const second = Math.floor(endedMs / 1_000);
    if (status === 429 || status === 503) this.refused[second] = (this.refused[second] ?? 0) + 1;
    else if (status === "timeout") this.timedOut += 1;
    else this.taken[second] = (this.taken[second] ?? 0) + 1;
  }

  closed({ task, status }: Call): void {
    if (!this.#counts(task)) return;
    this.closedCount += 1;
    if (status === 429 || status === 503) this.failedByRefusal += 1;
  }

  takenBetween(fromSecond: number, toSecond: number): number {
    return sum(this.taken, fromSecond, toSecond);
  }

  /** Of all calls that were answered. */
  refusedShare(fromSecond: number, toSecond: number): number {
    const refused = sum(this.refused, fromSecond, toSecond);
    return refused / Math.max(1, refused + this.takenBetween(fromSecond, toSecond));
  }

  #counts({ queue }: SimulatedTask): boolean {
    return this.#queue === undefined || this.#queue === queue;
  }
}

function sum(counts: readonly number[], from: number, to: number): number {
  let total = 0;
  for (let second = from; second < to; second++) total += counts[second] ?? 0;
  return total;
}
