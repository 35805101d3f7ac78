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
  const { key } = message;
  if (key === null || !isUtf8(key)) return { kind: "poison", cause: "undecodable", message: "the key is not text" };
  const result = codec.decode<T>(place.topic, message.value);
  const complete = (decoded: DecodeResult<T>): Decoded<T> => completed(decoded, place, { ...message, key });
  return result instanceof Promise ? result.then(complete) : complete(result);
}

function completed<T>(
  result: DecodeResult<T>,
  { topic, partition }: TopicPartition,
  { key, value, offset, timestamp }: KafkaMessage & { key: Buffer },
): Decoded<T> {
  if (result.ok) {
    const times = { offset: Number(offset), timestampMs: Number(timestamp) };
    const record = { topic, partition, ...times, key: key.toString(), bytes: value?.length ?? 0, value: result.value };
    return { kind: "record", record };
  }
  const { cause, message } = result;
  return cause === "registry_unreachable" ? { kind: "unreachable", message } : { kind: "poison", cause, message };
}
