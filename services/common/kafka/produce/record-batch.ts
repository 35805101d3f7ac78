import type { OutgoingRecord } from "../contracts.ts";
import { crc32c } from "./crc32c.ts";

/**
 * Record batches in the format v2 of Kafka: https://kafka.apache.org/documentation/#recordbatch. The bytes are those of kafkajs,
 * which makes a buffer of half a kilobyte for every header and copies each value five times: a fifth of the aggregator's work.
 */

/** The header of a record batch: what max.message.bytes is compared with is the batch, not the record. */
export const batchOverheadBytes = 61;

/** A record from its key on: what stands before it depends on its place in a batch. */
export function encodeRecord({ key, value, headers = {} }: OutgoingRecord): Buffer {
  const entries = Object.entries(headers);
  const headersBytes = entries.reduce((sum, [name, content]) => sum + prefixed(bytesOf(name)) + prefixed(bytesOf(content)), 0);
  const size = prefixed(bytesOf(key)) + prefixed(value.length) + lengthBytes(entries.length) + headersBytes;
  const record = Buffer.allocUnsafe(size);
  let at = writeContent(record, key, 0);
  at = writeContent(record, value, at);
  at = writeLength(record, entries.length, at);
  for (const [name, content] of entries) {
    at = writeContent(record, name, at);
    at = writeContent(record, content, at);
  }
  return record;
}

/** Bytes of an encoded record as the first of a batch. Further back in one it may take two bytes more. */
export function recordBytes(encoded: Uint8Array, place = 0): number {
  return prefixed(beforeOffsetBytes + lengthBytes(place) + encoded.length);
}

export function batchBytes(records: readonly Uint8Array[]): number {
  return records.reduce((sum, record, place) => sum + recordBytes(record, place), batchOverheadBytes);
}

/** Attributes and timestamp delta: both 0. */
const beforeOffsetBytes = 2;
const format = 2;
/** The checksum covers what follows it. */
const checkedFrom = 21;

/** Writes the batch, uncompressed and without a producer id, at `start`; returns where it ends. */
export function writeBatch(
  target: Buffer,
  start: number,
  { records, timestampMs }: { records: readonly Buffer[]; timestampMs: number },
): number {
  let at = start + batchOverheadBytes;
  for (const [place, record] of records.entries()) {
    at = writeLength(target, beforeOffsetBytes + lengthBytes(place) + record.length, at);
    target[at] = 0;
    target[at + 1] = 0;
    at = writeLength(target, place, at + beforeOffsetBytes);
    at += record.copy(target, at);
  }
  writeHeader(target.subarray(start, at), records.length, timestampMs);
  target.writeUInt32BE(crc32c(target, start + checkedFrom, at), start + checkedFrom - 4);
  return at;
}

/** All but the checksum. The broker sets the base offset, the leader's epoch and, for LogAppendTime, the times. */
function writeHeader(batch: Buffer, count: number, timestampMs: number): void {
  const noProducer = -1n;
  batch.writeBigInt64BE(0n, 0);
  batch.writeInt32BE(batch.length - 12, 8);
  batch.writeInt32BE(0, 12);
  batch.writeInt8(format, 16);
  batch.writeInt16BE(0, checkedFrom);
  batch.writeInt32BE(count - 1, 23);
  batch.writeBigInt64BE(BigInt(timestampMs), 27);
  batch.writeBigInt64BE(BigInt(timestampMs), 35);
  batch.writeBigInt64BE(noProducer, 43);
  batch.writeInt16BE(0, 51);
  batch.writeInt32BE(0, 53);
  batch.writeInt32BE(count, 57);
}

function bytesOf(content: string | Buffer): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.length;
}

/** Content with its length in front. */
function prefixed(contentBytes: number): number {
  return lengthBytes(contentBytes) + contentBytes;
}

/** A length as zigzag varint: 7 bits a byte, and the sign takes one. */
function lengthBytes(length: number): number {
  let bytes = 1;
  for (let rest = length >> 6; rest > 0; rest >>= 7) bytes += 1;
  return bytes;
}

function writeLength(target: Buffer, length: number, start: number): number {
  let at = start;
  let rest = length * 2;
  for (; rest > 127; rest >>>= 7) {
    target[at] = (rest & 127) | 128;
    at += 1;
  }
  target[at] = rest;
  return at + 1;
}

function writeContent(target: Buffer, content: string | Buffer, start: number): number {
  const at = writeLength(target, bytesOf(content), start);
  return at + (typeof content === "string" ? target.write(content, at) : content.copy(target, at));
}
