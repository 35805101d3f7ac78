import { isUtf8 } from "node:buffer";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Headers, OutgoingRecord, RawRecord, RecordProducer } from "../contracts.ts";
import type { Topics } from "../topics.ts";

/**
 * Why a record could not be processed.
 * - undecodable: empty, a tombstone, without a key, wrong framing or bytes.
 * - unknown_schema: the registry does not know its schema id.
 * - rejected: the handler threw PoisonRecordError.
 * - crashed: the handler threw an error of our own code (TypeError and the like), again and again.
 */
export const deadLetterCauses = ["undecodable", "unknown_schema", "rejected", "crashed"] as const;
export type DeadLetterCause = (typeof deadLetterCauses)[number];

export interface DeadLetters {
  /** Acknowledged before it resolves; rejects with AbandonedError when `signal` aborts. */
  put(record: RawRecord, cause: DeadLetterCause, message: string, signal?: AbortSignal): Promise<void>;
}

export interface DeadLetterOptions {
  readonly producer: RecordProducer;
  readonly topics: Topics;
  readonly metrics: Metrics;
  /** Both are written into the record's headers. */
  readonly service: string;
  readonly groupId: string;
}

const longestMessage = 1_000;

/**
 * Writes records to the dead letter topic as they were: key, value and headers; beside them, in headers that begin with
 * `dead_letter_`, where they come from and why they are here. What a Kafka record of ours cannot be is kept in headers too: a key that
 * is no text in `dead_letter_key`, and `dead_letter_value` says `null` for a tombstone.
 */
export function createDeadLetters(options: DeadLetterOptions): DeadLetters {
  const roles = new Map(options.topics.all.map(({ name, baseName }) => [name, baseName]));
  const written = options.metrics.counter("dead_letters_total", "Records written to the dead letter topic", {
    cause: deadLetterCauses,
    source: [...roles.values()],
  });
  return {
    async put(record, cause, message, signal) {
      const letter = letterOf(record, options, { cause, message });
      const [result] = await options.producer.deliver([letter], signal === undefined ? {} : { signal });
      if (result?.ok === false) await options.producer.deliver([withoutValue(letter)], signal === undefined ? {} : { signal });
      written.inc({ cause, source: roles.get(record.topic) ?? record.topic });
    },
  };
}

function letterOf(
  record: RawRecord,
  { topics, service, groupId }: DeadLetterOptions,
  { cause, message }: { cause: DeadLetterCause; message: string },
): OutgoingRecord {
  const { key, value } = record;
  const textKey = key !== null && isUtf8(key) ? key.toString() : undefined;
  const headers: Headers = {
    ...record.headers,
    dead_letter_cause: cause,
    dead_letter_message: message.slice(0, longestMessage),
    dead_letter_topic: record.topic,
    dead_letter_partition: String(record.partition),
    dead_letter_offset: String(record.offset),
    dead_letter_timestamp_ms: String(record.timestampMs),
    dead_letter_group: groupId,
    dead_letter_service: service,
    ...(textKey === undefined && key !== null ? { dead_letter_key: key } : {}),
    ...(value === null ? { dead_letter_value: "null" } : {}),
  };
  return { topic: topics.deadLetter.name, key: textKey ?? "", value: value ?? Buffer.alloc(0), headers };
}

/** Larger than the dead letter topic takes, which takes more than any other: what is left is where to find it. */
function withoutValue(letter: OutgoingRecord): OutgoingRecord {
  const ours = Object.entries(letter.headers ?? {}).filter(([name]) => name.startsWith("dead_letter_"));
  const dropped = { dead_letter_value: "dropped", dead_letter_value_bytes: String(letter.value.length) };
  return { ...letter, value: Buffer.alloc(0), headers: { ...Object.fromEntries(ours), ...dropped } };
}
