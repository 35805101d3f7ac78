import type { NewRecord } from "./log.ts";

/** Reads a record as services/common/kafka/produce/record-batch.ts writes it, from its key on. */
export function readRecord(encoded: Buffer): NewRecord {
  let at = 0;
  const length = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = encoded[at++] ?? 0;
      value += (byte & 127) * factor;
      if (byte < 128) return value / 2;
    }
  };
  const content = (): Buffer => {
    const bytes = length();
    at += bytes;
    return encoded.subarray(at - bytes, at);
  };
  const [key, value] = [content(), content()];
  const headers: Record<string, Buffer> = {};
  for (let left = length(); left > 0; left -= 1) headers[content().toString()] = content();
  return { key, value, headers };
}
