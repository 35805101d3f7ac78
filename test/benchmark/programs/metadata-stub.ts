import { readUsage } from "../measure/process-usage.ts";
import { quantile } from "../measure/statistics.ts";
import { type Program, startProgram } from "./program.ts";

export interface StubProfile {
  readonly latencyMs: number;
  readonly bodyBytes: number;
}

/** What the stub saw since it was asked last. */
export interface StubFigures {
  /** `/<profile>/<token id>` of every call, in the order of arrival. */
  readonly paths: readonly string[];
  readonly mostUnderWay: number;
  /** How much later than wanted answers left, of calls with a latency. */
  readonly lateMs: readonly number[];
}

/** A core that is busier than this, with nothing else to do than answering, is what limits the figure. */
const saturatedShare = 0.95;
/** A latency that is longer than wanted by this share is another latency. */
const lateShare = 0.1;

/** The Metadata API of the benchmark: a process of its own, so that it neither shares the caller's loop nor hides in its CPU time. */
export class MetadataStub {
  readonly program: Program;
  readonly url: string;
  readonly #latencyMs = new Map<string, number>();
  #saturation: string | undefined;

  static async start(options: { cpu?: number } = {}): Promise<MetadataStub> {
    const program = startProgram(new URL("stub-program.ts", import.meta.url), options);
    return new MetadataStub(program, `http://127.0.0.1:${await program.call<number>("listen")}`);
  }

  private constructor(program: Program, url: string) {
    this.program = program;
    this.url = url;
  }

  get pid(): number {
    return this.program.pid;
  }

  /** The `metadata_api_url` under which calls are answered so. The same name again changes how. */
  async profile(name: string, profile: StubProfile): Promise<string> {
    this.#latencyMs.set(name, profile.latencyMs);
    await this.program.call("setProfile", { name, ...profile });
    return `${this.url}/${name}`;
  }

  takeFigures(): Promise<StubFigures> {
    return this.program.call("takeFigures");
  }

  /** Remembers when the stub was the limit while `work` ran; a row with such a round is void. */
  async watch<T>(work: () => Promise<T>): Promise<T> {
    const begin = { cpuMs: this.#cpuMs(), atMs: performance.now() };
    const result = await work();
    const wallMs = performance.now() - begin.atMs;
    const share = (this.#cpuMs() - begin.cpuMs) / wallMs;
    if (share > saturatedShare) this.#saturation ??= `the Metadata API used ${Math.round(100 * share)} % of its core`;
    return result;
  }

  /** Held against the shortest latency that was asked for. */
  judgeLateness({ lateMs }: StubFigures): void {
    const latencies = [...this.#latencyMs.values()].filter((ms) => ms > 0);
    if (lateMs.length === 0 || latencies.length === 0) return;
    const [late, allowed] = [quantile(lateMs, 0.5), Math.max(2, lateShare * Math.min(...latencies))];
    if (late > allowed) this.#saturation ??= `half of the Metadata API's answers left more than ${late.toFixed(1)} ms late`;
  }

  /** Why the figures say nothing of who called it; undefined when they do. */
  get saturation(): string | undefined {
    return this.#saturation;
  }

  stop(): Promise<void> {
    return this.program.stop();
  }

  #cpuMs(): number {
    return readUsage(this.pid)?.cpuMs ?? 0;
  }
}
