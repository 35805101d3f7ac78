import { readFileSync } from "node:fs";

/** A process to be watched, by the name under which it is reported. */
export interface WatchedProcess {
  readonly name: string;
  readonly pid: number;
}

/** What a process has used so far; its peak counts from its start, not from the start of a round. */
export interface ProcessUsage {
  readonly cpuMs: number;
  readonly peakBytes: number;
  readonly residentBytes: number;
}

/** USER_HZ, which Linux fixes at 100 for what it tells of a process, whatever the kernel's own tick is. */
const msPerTick = 10;

/** undefined when the process is gone. */
export function readUsage(pid: number): ProcessUsage | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return { cpuMs: cpuMsOf(stat), ...memoryOf(readFileSync(`/proc/${pid}/status`, "utf8")) };
  } catch {
    return undefined;
  }
}

/**
 * User and system time of all threads, from the text of /proc/<pid>/stat; with that of children that have ended where it is asked for.
 * The second field is a name that may hold anything.
 */
export function cpuMsOf(stat: string, { withChildren = false } = {}): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields.slice(11, withChildren ? 15 : 13).reduce((sum, ticks) => sum + Number(ticks), 0) * msPerTick;
}

/** From the text of /proc/<pid>/status. */
export function memoryOf(status: string): Pick<ProcessUsage, "peakBytes" | "residentBytes"> {
  const bytesOf = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) * 1024;
  return { peakBytes: bytesOf("VmHWM"), residentBytes: bytesOf("VmRSS") };
}

/** What one process used for the tokens of the rounds that were watched. */
export interface UsageLine {
  readonly name: string;
  readonly cpuMicrosPerToken: number;
  readonly peakBytes: number;
}

/** Adds up what processes use while a side is measured, over all its rounds. */
export class UsageMeter {
  readonly #cpuMs = new Map<string, number>();
  readonly #peakBytes = new Map<string, number>();
  #tokenCount = 0;

  async during<T>(processes: readonly WatchedProcess[], tokenCount: number, work: () => Promise<T>): Promise<T> {
    const before = new Map(processes.map(({ pid }) => [pid, readUsage(pid)?.cpuMs ?? 0]));
    const result = await work();
    this.#tokenCount += tokenCount;
    for (const { name, pid } of processes) {
      const after = readUsage(pid);
      if (after === undefined) continue;
      this.#cpuMs.set(name, (this.#cpuMs.get(name) ?? 0) + after.cpuMs - (before.get(pid) ?? 0));
      this.#peakBytes.set(name, Math.max(this.#peakBytes.get(name) ?? 0, after.peakBytes));
    }
    return result;
  }

  lines(): UsageLine[] {
    return [...this.#cpuMs].map(([name, cpuMs]) => ({
      name,
      cpuMicrosPerToken: (cpuMs * 1_000) / Math.max(1, this.#tokenCount),
      peakBytes: this.#peakBytes.get(name) ?? 0,
    }));
  }
}
