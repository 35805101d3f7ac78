import type { Topics } from "../../services/common/kafka/topics.ts";
import type { Log } from "./kafka/log.ts";
import type { MetadataHosts } from "./metadata-hosts.ts";
import { codecFor } from "./replaced/codec.ts";
import type { VirtualTime } from "./time/virtual-time.ts";

interface Followed {
  readonly time: VirtualTime;
  readonly log: Log;
  readonly topics: Topics;
  readonly hosts: MetadataHosts;
}

/** What happened in a world, line by line, for a reader. */
export class Trace {
  readonly lines: string[] = [];
  #time: VirtualTime | undefined;

  follow({ time, log, topics, hosts }: Followed): void {
    this.#time = time;
    const codec = codecFor(topics.all.filter(({ schema }) => schema !== null));
    const bases = new Map(topics.all.map((topic) => [topic.name, topic]));
    log.onAppend((records) => {
      for (const { topic, partition, offset, value } of records) {
        const definition = bases.get(topic);
        const decoded = definition?.schema == null || value === null ? undefined : codec.decode<object>(topic, value);
        const content = decoded !== undefined && "ok" in decoded && decoded.ok ? brief(decoded.value) : `${value?.length} bytes`;
        this.note("log", `${topic.replace(/^.*metadata\./, "")} ${partition}@${offset} ${content}`);
      }
    });
    hosts.onCall(({ process, path, status }) => this.note(process, `calls ${path}: ${status}`));
  }

  note(who: string, line: string, fields: object = {}): void {
    const details = Object.entries(fields).map(([name, value]) => ` ${name}=${brief(value)}`);
    this.lines.push(`${((this.#time?.nowMs ?? 0) / 1_000).toFixed(3).padStart(10)} ${who.padEnd(14)} ${line}${details.join("")}`);
  }
}

const shown = ["refresh_id", "ordinal", "attempt", "emission", "check", "token_id", "error_code", "metadata", "version", "total"];

function brief(value: unknown): string {
  if (value instanceof Error) return value.stack ?? value.message;
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(brief).join()}]`;
  const entries = Object.entries(value);
  const known = entries.filter(([name, content]) => shown.includes(name) && content !== null);
  const kept = known.length === 0 ? entries : known;
  return kept
    .map(
      ([name, content]) =>
        `${name}:${typeof content === "object" ? brief(content) : String(content).replace(/^0{8}-.*-0*/, "r")}`,
    )
    .join(" ");
}
