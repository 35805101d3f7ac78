import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { readUsage } from "../benchmark/measure/process-usage.ts";
import { median } from "../benchmark/measure/statistics.ts";
import type { Fleet } from "./fleet.ts";

/** One look at a process. */
export interface Vital {
  readonly atMs: number;
  readonly residentBytes: number;
  /** Open file descriptors: files, sockets, timers of libuv. */
  readonly handles: number;
  /** The 99th percentile since the last look. */
  readonly loopLagMs: number;
}

/** How one process fared from its second quarter to its last. */
export interface Course {
  readonly process: string;
  readonly early: Omit<Vital, "atMs">;
  readonly late: Omit<Vital, "atMs">;
  readonly peakBytes: number;
}

const everyMs = 2_000;
const fewestLooks = 8;

/** Looks at memory, handles and event loop of the services' processes, from outside. */
export class VitalsWatch {
  readonly #fleet: Fleet;
  readonly #vitals = new Map<string, Vital[]>();
  readonly #stopping = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
  }

  /** Of processes that have lived long enough to have one; a process that was started anew is another one. */
  courses(): Course[] {
    return [...this.#vitals].flatMap(([process, vitals]) => {
      if (vitals.length < fewestLooks) return [];
      const quarter = Math.floor(vitals.length / 4);
      return {
        process,
        early: usual(vitals.slice(quarter, 2 * quarter)),
        late: usual(vitals.slice(-quarter)),
        peakBytes: Math.max(...vitals.map(({ residentBytes }) => residentBytes)),
      };
    });
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await Promise.all(this.#fleet.members.map(({ service, slot, process }) => this.#look(`${service}#${slot}`, process)));
      await sleep(everyMs, undefined, { signal }).catch(() => undefined);
    }
  }

  async #look(place: string, process: { readonly pid: number; port(event: string): number | undefined }): Promise<void> {
    const loopLagMs = await loopLagOf(process.port("operations.listening"));
    const usage = readUsage(process.pid);
    const handles = handlesOf(process.pid);
    if (loopLagMs === undefined || usage === undefined || handles === undefined) return;
    const name = `${place} (${process.pid})`;
    const known = this.#vitals.get(name) ?? [];
    this.#vitals.set(name, known);
    known.push({ atMs: performance.now(), residentBytes: usage.residentBytes, handles, loopLagMs });
  }
}

function usual(vitals: readonly Vital[]): Omit<Vital, "atMs"> {
  return {
    residentBytes: median(vitals.map(({ residentBytes }) => residentBytes)),
    handles: median(vitals.map(({ handles }) => handles)),
    loopLagMs: median(vitals.map(({ loopLagMs }) => loopLagMs)),
  };
}

function handlesOf(pid: number): number | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return undefined;
  }
}

/** undefined while the process does not answer: paused, or gone. */
async function loopLagOf(port: number | undefined): Promise<number | undefined> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(2_000) });
    const seconds = /^nodejs_eventloop_lag_p99_seconds\{[^}]*\} (\S+)$/m.exec(await answer.text())?.[1];
    return seconds === undefined ? undefined : Number(seconds) * 1_000;
  } catch {
    return undefined;
  }
}
