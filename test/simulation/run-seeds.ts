import { type Defect, findDefect } from "./defects.ts";
import { Trace } from "./trace.ts";
import { runWorld } from "./world.ts";

export interface SeedRange {
  readonly from: number;
  readonly count: number;
  /** Every so many-th seed, for workers that share a range. */
  readonly step?: number;
  readonly defect?: string | undefined;
  /** Ends with the first world that fails. */
  readonly untilFound?: boolean;
}

export interface SeedsReport {
  readonly worldCount: number;
  readonly eventCount: number;
  readonly callCount: number;
  readonly virtualMs: number;
  readonly failures: readonly { readonly seed: number; readonly message: string }[];
}

/** Worlds one after the other. */
export async function runSeeds({ from, count, step = 1, defect: name, untilFound = false }: SeedRange): Promise<SeedsReport> {
  const defect: Defect | undefined = name === undefined ? undefined : findDefect(name);
  const failures: { seed: number; message: string }[] = [];
  const sums = { worldCount: 0, eventCount: 0, callCount: 0, virtualMs: 0 };
  for (let seed = from; seed < from + count && !(untilFound && failures.length > 0); seed += step) {
    sums.worldCount += 1;
    try {
      const report = await withoutStrays(() => runWorld({ seed, defect }));
      sums.eventCount += report.eventCount;
      sums.callCount += report.callCount;
      sums.virtualMs += report.virtualMs;
    } catch (error) {
      failures.push({ seed, message: messageOf(error) });
    }
  }
  return { ...sums, failures };
}

/** One world, with what happened in it. */
export async function replay(seed: number, name: string | undefined): Promise<{ trace: Trace; failure: string | undefined }> {
  const trace = new Trace();
  const defect = name === undefined ? undefined : findDefect(name);
  try {
    await withoutStrays(() => runWorld({ seed, trace, defect }));
    return { trace, failure: undefined };
  } catch (error) {
    return { trace, failure: messageOf(error) };
  }
}

/** What nobody waits for, and fails all the same, belongs to the world that runs: a process of ours would have died of it. */
async function withoutStrays<T>(run: () => Promise<T>): Promise<T> {
  const strays: unknown[] = [];
  const stray = (error: unknown): void => void strays.push(error);
  process.on("unhandledRejection", stray);
  try {
    const result = await run();
    if (strays.length > 0) throw strays[0];
    return result;
  } finally {
    process.off("unhandledRejection", stray);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
