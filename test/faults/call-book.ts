import { closeSync, openSync, readSync } from "node:fs";
import type { CallRecord } from "../support/metadata-api/call-log.ts";
import type { SimulatorProcess } from "../support/metadata-api/client.ts";
import { waitFor } from "../support/wait-for.ts";

const chunkBytes = 1_048_576;

/** The calls that have ended, out of the simulator's own log file: what was asked, and how it was answered. */
export class CallBook {
  readonly #simulator: SimulatorProcess;
  readonly #file: number;
  readonly #byToken = new Map<string, CallRecord[]>();
  #position = 0;
  #rest = "";
  #lineCount = 0;

  constructor(simulator: SimulatorProcess, path: string) {
    this.#simulator = simulator;
    this.#file = openSync(path, "r");
  }

  /** Of all tokens, also of those that were forgotten. */
  get count(): number {
    return this.#lineCount;
  }

  /** In the order of their arrival. */
  of(tokenId: string): readonly CallRecord[] {
    return (this.#byToken.get(tokenId) ?? []).sort((one, other) => one.sequence - other.sequence);
  }

  /** Waits until everything is read that has been asked: only then was a call that is not here not made. */
  async caughtUp(): Promise<void> {
    const asked = await this.#simulator.counts();
    const read = (): number => {
      this.read();
      return asked.calls - this.#lineCount;
    };
    await waitFor("the calls that are not in the simulator's log yet", read, (missing) => missing <= 0, { everyMs: 50 });
  }

  /** What was added to the file since the last time. */
  read(): void {
    const chunk = Buffer.alloc(chunkBytes);
    for (;;) {
      const count = readSync(this.#file, chunk, 0, chunk.length, this.#position);
      if (count === 0) return;
      this.#position += count;
      // Every line is ASCII: a chunk may end anywhere.
      const lines = (this.#rest + chunk.toString("latin1", 0, count)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) this.#take(JSON.parse(line) as CallRecord);
    }
  }

  forget(tokenIds: Iterable<string>): void {
    for (const tokenId of tokenIds) this.#byToken.delete(tokenId);
  }

  close(): void {
    closeSync(this.#file);
  }

  #take(call: CallRecord): void {
    this.#lineCount += 1;
    const known = this.#byToken.get(call.tokenId);
    if (known === undefined) this.#byToken.set(call.tokenId, [call]);
    else known.push(call);
  }
}
