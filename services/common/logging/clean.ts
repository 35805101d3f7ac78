import { pino } from "pino";

/** Keys whose values never reach a log, wherever they stand in an event, in any case. */
const secretKeys: ReadonlySet<string> = new Set([
  "authorization",
  "x-api-key",
  "x-svc-eth-signature",
  "api_key",
  "apikey",
  "password",
  "admin_token",
]);

/** A line is for people and for indexes: what is longer belongs into neither. */
const longestText = 4_096;
const mostEntries = 50;
const deepest = 6;

/** The fields of an event as they may be logged: texts and lists cut, bytes counted, secrets replaced, errors with their stacks. */
export function clean(value: unknown, depth = 0): unknown {
  if (typeof value === "string") return shortened(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= deepest) return "[deeper]";
  if (Array.isArray(value)) return cleanList(value, depth);
  if ("toJSON" in value && typeof value.toJSON === "function") return clean(value.toJSON(), depth + 1);
  const fields = value instanceof Error ? pino.stdSerializers.err(value) : value;
  return Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, cleanField(key, field, depth)]));
}

function cleanField(key: string, field: unknown, depth: number): unknown {
  return secretKeys.has(key.toLowerCase()) ? "[redacted]" : clean(field, depth + 1);
}

function cleanList(list: readonly unknown[], depth: number): unknown[] {
  const kept = list.slice(0, mostEntries).map((entry) => clean(entry, depth + 1));
  return list.length > mostEntries ? [...kept, `… ${list.length} entries`] : kept;
}

function shortened(text: string): string {
  return text.length <= longestText ? text : `${text.slice(0, longestText)}… ${text.length} characters`;
}

/**
 * A line of JSON without what has the form of a secret: API keys, signatures, bearers, and in URLs user information and the values
 * of a query. Control characters that JSON lets through, and those that turn the direction of writing, are escaped: a terminal obeys them.
 */
export function withoutSecrets(line: string): string {
  return line
    .replace(secretForms, (_all, bearer?: string) => `${bearer ?? ""}[redacted]`)
    .replace(userInformation, "://[redacted]@")
    .replace(queryValues, "?[redacted]")
    .replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A part of a key is enough to be one: messages are cut. */
const secretForms = /amr_[0-9A-Za-z]{8,}|0x[0-9a-f]{130,}|(\bbearer +)[^\s"\\]+/gi;
const userInformation = /:\/\/[^/\s"\\]*@/g;
const queryValues = /\?[^\s"\\?=]*=[^\s"\\]*/g;
const obeyed = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
