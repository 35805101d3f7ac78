import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metadataText } from "../support/metadata-api/behaviour.ts";
import { type SimulatorProcess, startSimulator } from "../support/metadata-api/client.ts";
import type { SettingsChange } from "../support/metadata-api/settings.ts";
import { CallBook } from "./call-book.ts";

/** A simulated Metadata API in a process of its own, with the account of its calls. Each token id is of one project only. */
export class FaultApi {
  readonly simulator: SimulatorProcess;
  readonly book: CallBook;
  readonly #folder: string;
  readonly #revisions = [1];

  static async start(settings: SettingsChange): Promise<FaultApi> {
    const folder = mkdtempSync(join(tmpdir(), "fault-api-"));
    const path = join(folder, "calls.jsonl");
    // Its log in memory is not read.
    const simulator = await startSimulator({ settings, logFile: path, logCalls: 0 });
    return new FaultApi(simulator, folder, path);
  }

  private constructor(simulator: SimulatorProcess, folder: string, path: string) {
    this.simulator = simulator;
    this.book = new CallBook(simulator, path);
    this.#folder = folder;
  }

  get url(): string {
    return this.simulator.url;
  }

  /** Every good answer from now on has another text. */
  async changeMetadata(): Promise<void> {
    const revision = (this.#revisions.at(-1) ?? 0) + 1;
    this.#revisions.push(revision);
    await this.simulator.change({ revision });
  }

  /** Every text that a good answer to this token can have had so far. */
  textsOf(tokenId: string): string[] {
    return this.#revisions.map((revision) => metadataText(tokenId, { revision, bytes: null }));
  }

  async close(): Promise<void> {
    this.book.close();
    await this.simulator.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
