import type { OutgoingRecord } from "../contracts.ts";

/** The header of a record batch: what max.message.bytes is compared with is the batch, not the record. */
export const batchOverheadBytes = 61;

/**
 * Bytes of a record in an uncompressed batch, as its first record (record format v2: variable-length numbers, zigzag encoded).
 * Further back in a batch it may take two bytes more.
 */
export function recordBytes(record: OutgoingRecord): number {
  const attributes = 1;
  const timestampDelta = 1;
  const offsetDelta = 1;
  const body =
    attributes +
    timestampDelta +
    offsetDelta +
    prefixed(Buffer.byteLength(record.key)) +
    prefixed(record.value.length) +
    headerBytes(record.headers ?? {});
  return prefixed(body);
}

function headerBytes(headers: NonNullable<OutgoingRecord["headers"]>): number {
  const entries = Object.entries(headers);
  const each = entries.map(([name, value]) => prefixed(Buffer.byteLength(name)) + prefixed(Buffer.byteLength(value)));
  return lengthBytes(entries.length) + each.reduce((sum, bytes) => sum + bytes, 0);
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
