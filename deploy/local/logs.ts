import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { logFile } from "./folders.ts";
import type { ServerName, StackSettings } from "./settings.ts";

const tailBytes = 64 * 1024;
const pollMs = 300;

/** Prints the last lines of the servers' logs; with `follow` goes on with what is added, until interrupted. */
export async function printLogs(
  settings: StackSettings,
  servers: readonly ServerName[],
  options: { lines: number; follow: boolean },
): Promise<void> {
  const logs = servers.map((server) => openTail(server, logFile(settings, server), servers.length > 1));
  for (const log of logs) log.print(options.lines);
  while (options.follow) {
    await sleep(pollMs);
    for (const log of logs) log.print();
  }
}

function openTail(server: ServerName, file: string, prefixed: boolean) {
  let offset = Math.max(0, sizeOf(file) - tailBytes);
  let rest = "";

  /** The lines added since the last call, at most the last `atMost` of them. */
  function print(atMost = Number.POSITIVE_INFINITY): void {
    const size = sizeOf(file);
    // Shorter than before: it was rotated.
    if (size < offset) offset = 0;
    const lines = (rest + readRange(file, offset, size)).split("\n");
    rest = lines.pop() ?? "";
    offset = size;
    for (const line of lines.slice(-atMost)) process.stdout.write(prefixed ? `${server.padEnd(9)} ${line}\n` : `${line}\n`);
  }
  return { print };
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}

function readRange(file: string, from: number, to: number): string {
  if (to <= from) return "";
  const bytes = Buffer.alloc(to - from);
  const descriptor = openSync(file, "r");
  const count = readSync(descriptor, bytes, 0, bytes.length, from);
  closeSync(descriptor);
  return bytes.toString("utf8", 0, count);
}
