import type { Headers, OutgoingRecord, RawRecord } from "../../../services/common/kafka/contracts.ts";

/** What an operator decided about a letter. */
export const settlements = ["replayed", "discarded"] as const;
export type Settlement = (typeof settlements)[number];

/** A record that could not be processed, as services/common/kafka/consume/dead-letters.ts wrote it; its value left out. */
export interface DeadLetter {
  /** Where it lies in the dead letter topic: `partition/offset`. */
  readonly id: string;
  readonly atMs: number;
  readonly key: string;
  readonly valueBytes: number;
  readonly cause: string;
  readonly message: string;
  /** Where it could not be processed. */
  readonly origin: {
    readonly topic: string;
    readonly partition: string;
    readonly offset: string;
    readonly timestampMs: number;
    readonly group: string;
    readonly service: string;
  };
  /** The record's own headers, as they were. */
  readonly headers: Headers;
  /** Why it cannot be put back as it was; undefined when it can. */
  readonly lost: string | undefined;
}

/** Written behind a letter when it is settled: the topic keeps it longer than the letter, and nothing else has to be kept. */
export interface Marker {
  readonly id: string;
  readonly settlement: Settlement;
  readonly atMs: number;
  readonly note: string;
}

const ours = "dead_letter_";

export function letterOf(record: RawRecord): DeadLetter {
  const text = (name: string): string => String(record.headers[`${ours}${name}`] ?? "");
  return {
    id: idOf(record),
    atMs: record.timestampMs,
    key: record.key?.toString() ?? "",
    valueBytes: Number(text("value_bytes")) || (record.value?.length ?? 0),
    cause: text("cause"),
    message: text("message"),
    origin: {
      topic: text("topic"),
      partition: text("partition"),
      offset: text("offset"),
      timestampMs: Number(text("timestamp_ms")),
      group: text("group"),
      service: text("service"),
    },
    headers: Object.fromEntries(Object.entries(record.headers).filter(([name]) => !name.startsWith(ours))),
    lost: lostOf(record, text),
  };
}

export function idOf({ partition, offset }: { readonly partition: number; readonly offset: number }): string {
  return `${partition}/${offset}`;
}

/** What our producers cannot write again, and what would be a dead letter again at once. */
function lostOf({ headers, key }: RawRecord, text: (name: string) => string): string | undefined {
  if (text("value") === "dropped") return "its value was too large for the dead letter topic and was left out";
  if (text("value") === "null") return "it was a tombstone";
  if (headers[`${ours}key`] !== undefined || key === null || key.length === 0) return "it has no key that is text";
  return undefined;
}

export function markerOf({ headers, timestampMs }: RawRecord): Marker | undefined {
  const settlement = settlements.find((known) => known === String(headers[`${ours}settled`]));
  const id = headers[`${ours}settles`];
  if (settlement === undefined || id === undefined) return undefined;
  return { id: String(id), settlement, atMs: timestampMs, note: String(headers[`${ours}note`] ?? "") };
}

/** The record that says what was decided; with the letter's key, so that it lies in the same partition, behind it. */
export function markerRecord(
  topic: string,
  letter: Pick<DeadLetter, "id" | "key">,
  { settlement, note }: { settlement: Settlement; note: string },
): OutgoingRecord {
  const headers = { [`${ours}settled`]: settlement, [`${ours}settles`]: letter.id, [`${ours}note`]: note };
  return { topic, key: letter.key, value: Buffer.alloc(0), headers };
}

const originHeaders = ["topic", "partition", "offset", "timestamp_ms"].map((name) => `${ours}${name}`);

/** The record as it was, for the topic it came from: key, value, its own headers, and those that say where it was first. */
export function originalRecord(record: RawRecord): OutgoingRecord {
  const { origin, key, headers } = letterOf(record);
  const kept = originHeaders.flatMap((name) => (record.headers[name] === undefined ? [] : [[name, record.headers[name]]]));
  const back = { ...headers, ...Object.fromEntries(kept), [`${ours}replay_of`]: idOf(record) };
  return { topic: origin.topic, key, value: record.value ?? Buffer.alloc(0), headers: back };
}
