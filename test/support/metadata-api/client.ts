import { fork } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import type { CallPage, CallRecord } from "./call-log.ts";
import type { Settings, SettingsChange } from "./settings.ts";
import type { Counts } from "./simulator.ts";

export interface SimulatorProcessOptions {
  /** What differs from `defaultSettings`. */
  readonly settings?: SettingsChange;
  /** 0, the default: any free port. */
  readonly port?: number;
  /** Calls that its log keeps in memory; 100,000 by default. */
  readonly logCalls?: number;
  /** A line of JSON for each ended call is appended to this file. */
  readonly logFile?: string;
}

/** A simulator that runs as a process of its own, and so takes no time of the caller's event loop. */
export interface SimulatorProcess extends AsyncDisposable {
  /** What a collection registers as its `metadata_api_url`. */
  readonly url: string;
  readonly controlUrl: string;
  readonly pid: number;
  settings(): Promise<Settings>;
  /** The settings named, at once; the others stay. Rejects with what is wrong. */
  change(settings: SettingsChange): Promise<Settings>;
  counts(): Promise<Counts>;
  /** Every call that the log has, in the order of arrival. */
  calls(): Promise<CallRecord[]>;
  /** Empties log and counts, and gives the counts until then. */
  forget(): Promise<Counts>;
  close(): Promise<void>;
}

const program = new URL("main.ts", import.meta.url);
const page = 10_000;

/** Starts the simulator as a child process; it ends with `close`, or when this process does. Rejects when it does not start. */
export async function startSimulator(options: SimulatorProcessOptions = {}): Promise<SimulatorProcess> {
  const child = fork(program, flagsOf(options), { execArgv: ["--no-warnings"], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let complaints = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const exit = once(child, "exit");
  const started = await Promise.race([once(child, "message"), exit.then(() => undefined)]);
  if (started === undefined) throw new Error(`the simulator did not start: ${complaints}`);
  const [{ url, controlUrl }] = started as [{ url: string; controlUrl: string }];
  const close = async () => {
    if (child.connected) child.disconnect();
    await exit;
  };
  return {
    url,
    controlUrl,
    pid: child.pid ?? process.pid,
    settings: () => ask(controlUrl, "GET /settings"),
    change: (settings) => ask(controlUrl, "PUT /settings", settings),
    counts: () => ask(controlUrl, "GET /counts"),
    calls: () => allCalls(controlUrl),
    forget: () => ask(controlUrl, "DELETE /calls"),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function flagsOf({ settings = {}, port = 0, logCalls, logFile }: SimulatorProcessOptions): string[] {
  return [
    ...["--port", String(port), "--control-port", "0", "--settings", JSON.stringify(settings)],
    ...(logCalls === undefined ? [] : ["--log-calls", String(logCalls)]),
    ...(logFile === undefined ? [] : ["--log-file", logFile]),
  ];
}

async function allCalls(controlUrl: string): Promise<CallRecord[]> {
  const calls: CallRecord[] = [];
  for (let after = 0; ; ) {
    const read = await ask<CallPage>(controlUrl, `GET /calls?after=${after}&count=${page}`);
    calls.push(...read.calls);
    if (read.calls.length < page) return calls;
    after = read.next;
  }
}

async function ask<T>(controlUrl: string, what: string, body?: object): Promise<T> {
  const [method = "GET", path = "/"] = what.split(" ");
  const response = await fetch(controlUrl + path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  const answer = (await response.json()) as { message?: string; problems?: string[] };
  if (!response.ok) throw new Error([answer.message, ...(answer.problems ?? [])].join("; "));
  return answer as T;
}
