import { isUtf8 } from "node:buffer";
import type { KafkaMessage } from "kafkajs";
import type { Codec, DecodedRecord, DecodeResult, Headers, RawRecord, TopicPartition } from "../contracts.ts";

export function rawRecord({ topic, partition }: TopicPartition, message: KafkaMessage): RawRecord {
  return {
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key,
    value: message.value,
    timestampMs: Number(message.timestamp),
    headers: headersOf(message),
  };
}

/** A header name that was given more than once keeps its last value: no record of ours has one. */
function headersOf(message: KafkaMessage): Headers {
  const pairs = Object.entries(message.headers ?? {}).map(([name, value]) => [name, Array.isArray(value) ? value.at(-1) : value]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

/** What became of a message: a record, one that never will be, or one that has to wait until the registry answers again. */
export type Decoded<T> =
  | { readonly kind: "record"; readonly record: DecodedRecord<T> }
  | { readonly kind: "poison"; readonly cause: "undecodable" | "unknown_schema"; readonly message: string }
  | { readonly kind: "unreachable"; readonly message: string };

/** A promise only where the registry has to be asked. */
export function decodeMessage<T>(codec: Codec, place: TopicPartition, message: KafkaMessage): Decoded<T> | Promise<Decoded<T>> {
  const key = textOf(message.key);
  if (key === undefined) return { kind: "poison", cause: "undecodable", message: "the key is not text" };
  const result = codec.decode<T>(place.topic, message.value);
  return result instanceof Promise
    ? result.then((later) => completed(later, place, { message, key }))
    : completed(result, place, { message, key });
}

export async function decodeMessages<T>(
  codec: Codec,
  place: TopicPartition,
  messages: readonly KafkaMessage[],
): Promise<readonly Decoded<T>[]> {
  const decoded: Decoded<T>[] = [];
  for (const message of messages) {
    const one = decodeMessage<T>(codec, place, message);
    decoded.push(one instanceof Promise ? await one : one);
  }
  return decoded;
}

let lastKey: { readonly bytes: Buffer; readonly text: string | undefined } | undefined;

/** undefined: no text. Neighbours of one key share its bytes (fetch-answer.ts), and here the text. */
function textOf(bytes: Buffer | null): string | undefined {
  if (bytes === null) return undefined;
  if (lastKey?.bytes !== bytes) lastKey = { bytes, text: isUtf8(bytes) ? bytes.toString() : undefined };
  return lastKey.text;
}

function completed<T>(
  result: DecodeResult<T>,
  { topic, partition }: TopicPartition,
  { message: { value, offset, timestamp }, key }: { readonly message: KafkaMessage; readonly key: string },
): Decoded<T> {
  if (result.ok) {
    const [offsetNumber, timestampMs] = [Number(offset), Number(timestamp)];
    const record = { topic, partition, offset: offsetNumber, timestampMs, key, bytes: value?.length ?? 0, value: result.value };
    return { kind: "record", record };
  }
  const { cause, message } = result;
  return cause === "registry_unreachable" ? { kind: "unreachable", message } : { kind: "poison", cause, message };
}
