import { Command, InvalidArgumentError, Option } from "commander";
import { controlRoutes } from "./control.ts";
import { hostileNames } from "./hostile-answers.ts";
import type { Limit } from "./limiter.ts";
import { changeSettings, defaultSettings, faultWords, type Latency, type Settings, type SettingsChange } from "./settings.ts";

export interface ProgramOptions {
  readonly port: number;
  readonly controlPort: number;
  readonly logCalls: number;
  readonly logFile: string | undefined;
  readonly settings: Settings;
}

/** The command line; `start` gets what it says. Mistakes end the program with what is wrong and status 1. */
export function createProgram(start: (options: ProgramOptions) => Promise<void>): Command {
  const program = new Command("metadata-api");
  program
    .description("A project's Metadata API as a simulator, on loopback: GET /metadata/{token_id}, or any other path.")
    .option("--port <number>", "port of the API, 0 for any", whole(0, 65_535), 8_095)
    .option("--control-port <number>", "port of the control endpoint, 0 for any", whole(0, 65_535), 8_096)
    .option("--latency <ms>", "before an answer: 20, or 10..50, or median=20,p99=200", readLatency)
    .option("--mix <shares>", "how calls fail: 404=0.01,503=0.05,hang=0.001 (faults below)", readMix)
    .option("--faulty-calls <number>", "only the first calls of a token fail, this many", whole(1, 1_000_000))
    .option("--retry-after <value>", "sent with 429 and 503: seconds, or an HTTP date, or nonsense", readRetryAfter)
    .option("--limit <limit>", "hidden limit: 100/s, sliding:100/s, bucket:100/s,burst=20, in-flight:8", readLimit)
    .addOption(new Option("--limit-status <status>", "status of what is beyond the limit").choices(["429", "503"]))
    .option("--body-bytes <bytes>", "size of good answers: 1024, or 200..4000", readBodyBytes)
    .option("--revision <number>", "part of every good answer: another one makes all metadata new", whole(0, 1e9))
    .option("--keep-alive-calls <number>", "close a connection after so many answers", whole(1, 1_000_000))
    .option("--keep-alive-idle <ms>", "close a connection after so long without a call", whole(1, 600_000))
    .option("--hostile <name>", "send the bytes of this hostile answer to every call (names below)")
    .option("--seed <number>", "seed of all chance", whole(0, Number.MAX_SAFE_INTEGER))
    .option("--settings <json>", "settings as PUT /settings takes them; they win over the options above", readJson)
    .option("--log-calls <number>", "calls that the log keeps in memory", whole(0, 10_000_000), 100_000)
    .option("--log-file <path>", "write each ended call as a line of JSON to this file as well")
    .addHelpText("after", explanation)
    .action((flags: Flags) => start(optionsOf(program, flags)));
  return program;
}

interface Flags {
  readonly port: number;
  readonly controlPort: number;
  readonly logCalls: number;
  readonly logFile?: string;
  readonly latency?: Latency;
  readonly mix?: Settings["mix"];
  readonly faultyCalls?: number;
  readonly retryAfter?: number | string;
  readonly limit?: Limit;
  readonly limitStatus?: string;
  readonly bodyBytes?: Settings["bodyBytes"];
  readonly revision?: number;
  readonly keepAliveCalls?: number;
  readonly keepAliveIdle?: number;
  readonly hostile?: string;
  readonly seed?: number;
  readonly settings?: object;
}

function optionsOf(program: Command, flags: Flags): ProgramOptions {
  const { port, controlPort, logCalls, logFile } = flags;
  const checked = changeSettings(defaultSettings, { ...changeOf(flags), ...flags.settings });
  if (!checked.ok) return program.error(checked.problems.map((problem) => `error: ${problem}`).join("\n"));
  return { port, controlPort, logCalls, logFile, settings: checked.settings };
}

function changeOf(flags: Flags): SettingsChange {
  const { latency, mix, faultyCalls, retryAfter, limit, limitStatus, bodyBytes, revision, hostile, seed } = flags;
  const keepAlive = { calls: flags.keepAliveCalls ?? null, idleMs: flags.keepAliveIdle ?? null };
  const change = { latency, mix, faultyCalls, retryAfter, limit, bodyBytes, revision, hostile, seed, keepAlive };
  const given = Object.entries({ ...change, limitStatus: limitStatus && Number(limitStatus) });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

const explanation = `
Faults for --mix: any status from 200 to 999, ${faultWords.join(", ")}.

It can be changed while it runs, at the control port:
${Object.entries(controlRoutes)
  .map(([route, what]) => `  ${route.padEnd(16)} ${what}`)
  .join("\n")}

  curl -X PUT http://127.0.0.1:8096/settings -d '{"limit":{"kind":"sliding_window","perSecond":25}}'

Hostile answers:
  ${hostileNames.join("\n  ")}
`;

function whole(least: number, most: number) {
  return (text: string): number => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

const number = "(\\d+(?:\\.\\d+)?)";

function readLatency(text: string): Latency {
  const numbers = (pattern: string) => new RegExp(`^${pattern}$`).exec(text)?.slice(1).map(Number);
  const [ms] = numbers(number) ?? [];
  if (ms !== undefined) return { kind: "fixed", ms };
  const [fromMs, toMs] = numbers(`${number}\\.\\.${number}`) ?? [];
  if (fromMs !== undefined && toMs !== undefined) return { kind: "range", fromMs, toMs };
  const [medianMs, p99Ms] = numbers(`median=${number},p99=${number}`) ?? [];
  if (medianMs !== undefined && p99Ms !== undefined) return { kind: "distribution", medianMs, p99Ms };
  throw new InvalidArgumentError("It must look like 20, or 10..50, or median=20,p99=200 (milliseconds).");
}

function readMix(text: string): Settings["mix"] {
  const entries = text.split(",").map((pair) => /^([a-z0-9_]+)=(\d*\.?\d+)$/.exec(pair));
  if (entries.includes(null)) throw new InvalidArgumentError("It must look like 404=0.01,503=0.05,hang=0.001.");
  return Object.fromEntries(entries.map((entry) => [entry?.[1], Number(entry?.[2])]));
}

function readRetryAfter(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

function readLimit(text: string): Limit {
  const window = /^(sliding:)?(\d+)\/s$/.exec(text);
  if (window) return { kind: window[1] ? "sliding_window" : "fixed_window", perSecond: Number(window[2]) };
  const bucket = new RegExp(`^bucket:${number}/s,burst=(\\d+)$`).exec(text);
  if (bucket) return { kind: "token_bucket", perSecond: Number(bucket[1]), burst: Number(bucket[2]) };
  const inFlight = /^in-flight:(\d+)$/.exec(text);
  if (inFlight) return { kind: "in_flight", calls: Number(inFlight[1]) };
  throw new InvalidArgumentError("It must look like 100/s, sliding:100/s, bucket:100/s,burst=20, or in-flight:8.");
}

function readBodyBytes(text: string): Settings["bodyBytes"] {
  const sizes = /^(\d+)(?:\.\.(\d+))?$/.exec(text);
  if (!sizes) throw new InvalidArgumentError("It must look like 1024, or 200..4000.");
  return sizes[2] === undefined ? Number(sizes[1]) : { from: Number(sizes[1]), to: Number(sizes[2]) };
}

function readJson(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {}
  throw new InvalidArgumentError("It must be a JSON object.");
}
