import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { dataFolder, logFile, recordFile, writeWhole } from "./folders.ts";
import { codeOf, reasonOf, StackProblem } from "./problem.ts";
import { identify, isSameProcess } from "./processes.ts";
import type { ServerKind } from "./servers/server.ts";
import type { ServerName, StackSettings } from "./settings.ts";

const recordSchema = z.object({
  pid: z.number(),
  startTicks: z.string(),
  bootId: z.string(),
  version: z.string(),
  ports: z.array(z.number()),
  startedAtMs: z.number(),
});

/** What is remembered of a started process, in run/<server>.json: who it is, and what it was started as. */
export type ProcessRecord = Readonly<z.infer<typeof recordSchema>>;

/** Ten times what the slowest start took on two idle cores. */
const readyWithinMs = 120_000;
const pollMs = 150;
/** One try of a request; a stopped process takes connections and never answers. */
const answerWithinMs = 5_000;
const killedWithinMs = 10_000;
const largestLogBytes = 20 * 1024 ** 2;

/** The record of a server that was started and not stopped, whether or not its process still lives. */
export function readRecord(settings: StackSettings, server: ServerName): ProcessRecord | undefined {
  try {
    return recordSchema.parse(JSON.parse(readFileSync(recordFile(settings, server), "utf8")));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw new StackProblem(
      `${recordFile(settings, server)} cannot be understood; delete it, after stopping the ${server} it was written for`,
    );
  }
}

/** The record of a server whose process lives. */
export function runningRecord(settings: StackSettings, server: ServerName): ProcessRecord | undefined {
  const record = readRecord(settings, server);
  return record !== undefined && isSameProcess(record) ? record : undefined;
}

/** Starts the process, which outlives this one and its terminal. It does not wait until the server answers. */
export async function launch(kind: ServerKind, settings: StackSettings): Promise<ProcessRecord> {
  const pid = await spawnDetached(kind, settings);
  const identity = identify(pid);
  if (identity === undefined) throw endedEarly(kind, settings);
  const record = { ...identity, version: kind.version(settings), ports: portsOf(kind, settings), startedAtMs: Date.now() };
  writeWhole(recordFile(settings, kind.name), `${JSON.stringify(record)}\n`);
  return record;
}

export function portsOf(kind: ServerKind, settings: StackSettings): number[] {
  return kind.ports(settings).map(({ port }) => port);
}

/** Resolves when the server has answered a request; a process that ends first or stays silent is a `StackProblem`. */
export async function untilItAnswers(kind: ServerKind, settings: StackSettings, record: ProcessRecord): Promise<void> {
  const deadline = performance.now() + readyWithinMs;
  let reason = await refusal(kind, settings);
  while (reason !== undefined) {
    if (!isSameProcess(record)) throw endedEarly(kind, settings);
    if (performance.now() > deadline) {
      const log = logFile(settings, kind.name);
      throw new StackProblem(
        `${kind.title} (process ${record.pid}) has not answered for ${readyWithinMs / 1000} s (${reason}); read ${log}, then run down and up`,
      );
    }
    await sleep(pollMs);
    reason = await refusal(kind, settings);
  }
}

/** Why the server does not answer; `undefined` when it does. */
export async function refusal(kind: ServerKind, settings: StackSettings): Promise<string | undefined> {
  const abort = new AbortController();
  const late = sleep(answerWithinMs, "no answer in time", { signal: abort.signal }).catch(() => undefined);
  const asked = kind.answers(settings).then(() => undefined, reasonOf);
  const reason = await Promise.race([asked, late]);
  abort.abort();
  return reason;
}

/** Orderly first, by force after the server's own deadline. A record whose process is gone is only deleted. */
export async function stopProcess(kind: ServerKind, settings: StackSettings): Promise<"stopped" | "killed" | "was not running"> {
  const record = readRecord(settings, kind.name);
  let outcome: "stopped" | "killed" | "was not running" = "was not running";
  if (record !== undefined && isSameProcess(record)) {
    signal(record, "SIGTERM");
    // A process that was paused sees the first signal only when it goes on.
    signal(record, "SIGCONT");
    outcome = "stopped";
    if (!(await untilGone(record, kind.stopWithinMs))) {
      await killProcess(record);
      outcome = "killed";
    }
  }
  rmSync(recordFile(settings, kind.name), { force: true });
  return outcome;
}

/** kill -9, and waits until the process is gone. */
export async function killProcess(record: ProcessRecord): Promise<void> {
  signal(record, "SIGKILL");
  if (!(await untilGone(record, killedWithinMs))) {
    throw new StackProblem(
      `process ${record.pid} does not end, not even when killed; it most likely waits for a disk that does not answer`,
    );
  }
}

/** Sends a signal to the recorded process only: a process that took over its id gets none. */
export function signal(record: ProcessRecord, name: NodeJS.Signals): void {
  if (!isSameProcess(record)) return;
  try {
    process.kill(record.pid, name);
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
}

async function untilGone(record: ProcessRecord, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs;
  while (isSameProcess(record)) {
    if (performance.now() > deadline) return false;
    await sleep(50);
  }
  return true;
}

async function spawnDetached(kind: ServerKind, settings: StackSettings): Promise<number> {
  const { file, arguments: list } = kind.command(settings);
  const output = openLog(logFile(settings, kind.name));
  const child = spawn(file, list, {
    // A session of its own: neither Ctrl-C nor the end of the terminal reaches it.
    detached: true,
    stdio: ["ignore", output, output],
    env: serverEnvironment(),
    // Apicurio reads settings from .env and config/ in the working directory.
    cwd: dataFolder(settings, kind.name),
  });
  closeSync(output);
  child.unref();
  return new Promise((resolve, reject) => {
    child.once("spawn", () => resolve(child.pid ?? 0));
    child.once("error", (error) =>
      reject(new StackProblem(`${kind.title} cannot be started (${reasonOf(error)}); check that ${file} can be executed`)),
    );
  });
}

/** Appends, so that the log of a crash is still there after the restart. */
function openLog(file: string): number {
  mkdirSync(dirname(file), { recursive: true });
  if (existsSync(file) && statSync(file).size > largestLogBytes) renameSync(file, `${file}.1`);
  return openSync(file, "a");
}

/** Little of ours: Apicurio takes every variable that looks like one of its settings for one. */
function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = ["PATH", "HOME", "TZ", "TMPDIR", "LD_LIBRARY_PATH"];
  const own = Object.fromEntries(kept.map((name) => [name, process.env[name]]).filter(([, value]) => value !== undefined));
  // Java opens paths beyond ASCII only in a UTF-8 locale.
  return { ...own, LC_ALL: "C.UTF-8" };
}

function endedEarly(kind: ServerKind, settings: StackSettings): StackProblem {
  const log = logFile(settings, kind.name);
  return new StackProblem(`${kind.title} ended while it was starting (${lastComplaint(log)}); read ${log}`);
}

/** The line of the log's end that most likely says why. */
function lastComplaint(log: string): string {
  const lines = readFileSync(log, "utf8").trimEnd().split("\n").slice(-200);
  const line =
    lines.findLast((text) => /error|exception|fatal|cannot|fail/i.test(text) && !/^\s*at /.test(text)) ?? lines.at(-1) ?? "";
  return line.trim().slice(0, 200) || "it printed nothing";
}
