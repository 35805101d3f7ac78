import { createWriteStream, mkdirSync } from "node:fs";
import { dirname, relative } from "node:path";
import { logFile } from "../local/folders.ts";
import { paint } from "../local/reporter.ts";
import { readSettings } from "../local/settings.ts";
import type { ServiceName } from "./service-process.ts";

/** A path as somebody in this folder would type it. */
export function shownPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short.startsWith("..") ? path : short;
}

/** Keys that every line has, or that are shown in another way. */
const shownElsewhere = new Set(["level", "time", "service", "event", "err"]);

/** Where the services' output goes: everything to a file each, and to the terminal what somebody should see. */
export class ServiceLogs {
  readonly #files = new Map<ServiceName, ReturnType<typeof createWriteStream>>();
  readonly #show: (text: string) => void;
  #shownLevels: readonly string[] = ["error", "fatal"];

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  readonly take = (name: ServiceName, line: string): void => {
    this.#file(name).write(`${line}\n`);
    const text = readable(name, line, this.#shownLevels);
    if (text !== undefined) this.#show(text);
  };

  /** From now on warnings too. While everything starts they only say that somebody else is not there yet. */
  showWarnings(): void {
    this.#shownLevels = ["warn", "error", "fatal"];
  }

  async close(): Promise<void> {
    await Promise.all([...this.#files.values()].map((file) => new Promise<void>((flushed) => file.end(flushed))));
  }

  #file(name: ServiceName) {
    const path = serviceLogFile(name);
    const existing = this.#files.get(name);
    if (existing !== undefined) return existing;
    mkdirSync(dirname(path), { recursive: true });
    const file = createWriteStream(path, { flags: "w" });
    this.#files.set(name, file);
    return file;
  }
}

/** In a folder of their own: the schema registry, a server of the stack, logs beside it as `registry`. */
export function serviceLogFile(name: ServiceName): string {
  return logFile(readSettings(), `services/${name}`);
}

/** An entry of the levels as one line for a person; undefined for any other. What is no JSON came from Node itself: shown. */
function readable(name: ServiceName, line: string, levels: readonly string[]): string | undefined {
  const entry = parsed(line);
  if (entry === undefined) return `${name.padEnd(10)} ${line}`;
  const level = String(entry.level);
  if (!levels.includes(level)) return undefined;
  const details = Object.entries(entry).filter(([key]) => !shownElsewhere.has(key));
  const error = entry.err as { message?: string } | undefined;
  const text = [...details.map(([key, value]) => `${key}=${JSON.stringify(value)}`), error?.message ?? ""].join(" ");
  const colour = level === "warn" ? "yellow" : "red";
  return `${name.padEnd(10)} ${paint(process.stdout, colour, level)} ${entry.event} ${paint(process.stdout, "dim", text)}`;
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
