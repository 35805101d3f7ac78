import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { cpuMsOf, type WatchedProcess } from "./process-usage.ts";

/** CPU time so far: of the whole machine, and of what belongs to the benchmark. */
export interface CpuTimes {
  readonly atMs: number;
  /** Of all processors, time that a host took from this machine included. */
  readonly busyMs: number;
  readonly ownMs: number;
}

/** Above this share of the machine others have decided what was measured: a pipeline of ten processes then beats a loop of two. */
const toleratedShare = 0.1;
const msPerTick = 10;

/** Our own part is this process, the children that have ended, and the servers: to be read when no child is left. */
export function readCpuTimes(servers: readonly WatchedProcess[]): CpuTimes {
  const own = cpuMsOf(readFileSync("/proc/self/stat", "utf8"), { withChildren: true });
  const ofServers = servers.map(({ pid }) => cpuMsOf(readFileSync(`/proc/${pid}/stat`, "utf8")));
  return {
    atMs: performance.now(),
    busyMs: busyMsOf(readFileSync("/proc/stat", "utf8")),
    ownMs: ofServers.reduce((sum, ms) => sum + ms, own),
  };
}

/** From the text of /proc/stat: everything but idle and waiting for disks. */
export function busyMsOf(stat: string): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (stat.split("\n")[0] ?? "")
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq + steal) * msPerTick;
}

/** The share of the machine that others used between the two readings, from 0 to 1. */
export function foreignShare(before: CpuTimes, after: CpuTimes, processorCount: number): number {
  const foreignMs = after.busyMs - before.busyMs - (after.ownMs - before.ownMs);
  return Math.max(0, foreignMs) / ((after.atMs - before.atMs) * processorCount);
}

/** Why a row's figures do not count, if others were at work. Servers in containers cannot be told from others: then undefined. */
export function disturbance(before: CpuTimes, servers: readonly WatchedProcess[]): string | undefined {
  if (servers.length === 0) return undefined;
  const share = foreignShare(before, readCpuTimes(servers), cpus().length);
  return share > toleratedShare ? `other processes used ${Math.round(100 * share)} % of the machine meanwhile` : undefined;
}
