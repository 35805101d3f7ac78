import type { ErrorDetail } from "./results.ts";

/**
 * Deeper than any real metadata, and no deeper than common parsers read by default (System.Text.Json 64, serde_json 128, PHP 512,
 * Jackson and Python about 1000): what is published must not break those who read it.
 */
const maxDepth = 64;

// Fatal: Buffer.toString would turn a wrong byte into U+FFFD without a word. A byte order mark stays and is no JSON (RFC 8259, 8.1).
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export type MetadataBody = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly detail: ErrorDetail };

/** The body of a 200 as text when it is a JSON object in UTF-8. It is parsed to be judged only, never serialised again. */
export function readMetadata(bytes: Uint8Array): MetadataBody {
  const text = decode(bytes);
  if (text === undefined) return { ok: false, detail: "not_utf8" };
  if (depthExceeds(bytes, maxDepth)) return { ok: false, detail: "too_deep" };
  const value = parse(text);
  if (value === undefined) return { ok: false, detail: "not_json" };
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? { ok: true, text } : { ok: false, detail: "not_an_object" };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}

/** No JSON text parses to undefined. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const quote = 0x22;
const backslash = 0x5c;

/** Counted over the bytes, before a parser has to build the depth. Of a text that is no JSON the answer means nothing. */
function depthExceeds(bytes: Uint8Array, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index];
    if (byte === quote) inString = !inString;
    else if (inString) index += byte === backslash ? 1 : 0;
    else if (byte === 0x7b || byte === 0x5b) depth += 1;
    else if (byte === 0x7d || byte === 0x5d) depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}
