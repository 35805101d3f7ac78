import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem, version } from "node:os";
import { stackStatus } from "../../../deploy/local/lifecycle.ts";
import { readSettings } from "../../../deploy/local/settings.ts";
import type { WatchedProcess } from "./process-usage.ts";

/** What a figure depends on beside the code. */
export interface Header {
  readonly startedAt: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly cores: number;
  readonly processor: string;
  readonly memoryBytes: number;
  readonly kernel: string;
  /** Of the last minute, when the run began: above the number of cores somebody else was working here. */
  readonly loadAtStart: number;
  readonly rounds: number;
}

export async function describeMachine(rounds: number): Promise<Header> {
  const servers = await stackStatus(readSettings());
  const [processor] = cpus();
  return {
    startedAt: new Date().toISOString(),
    versions: {
      package: packageVersion(),
      node: process.versions.node,
      ...Object.fromEntries(servers.map(({ name, version }) => [name, version])),
    },
    cores: cpus().length,
    processor: processor?.model ?? "unknown",
    memoryBytes: totalmem(),
    kernel: version(),
    loadAtStart: loadavg()[0] ?? 0,
    rounds,
  };
}

/** The servers whose processes are on this machine; in containers they are not to be seen. */
export async function serverProcesses(): Promise<WatchedProcess[]> {
  const servers = await stackStatus(readSettings());
  return servers.flatMap(({ name, pid }) => (pid === undefined ? [] : [{ name, pid }]));
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
