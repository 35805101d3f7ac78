import type { HostileName } from "./hostile-answers.ts";

/** How the API answers one call. Without anything: 200 and the token's default metadata, at once. */
export interface Behaviour {
  readonly status?: number;
  /** An object is sent as JSON; text and bytes as they are. Default: the token's metadata for 200, a short error otherwise. */
  readonly body?: object | string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Before the first byte of the answer. */
  readonly delayMs?: number;
  /** Seconds, or an HTTP date. */
  readonly retryAfter?: number | string;
  /** Take the call and never answer. */
  readonly hang?: boolean;
  /** Close the connection without an answer. */
  readonly reset?: boolean;
  /** Bytes that no honest server sends, instead of an answer. */
  readonly hostile?: HostileName;
}

/** One answer as it goes over the wire, whatever the connection does afterwards. */
export interface Answer {
  readonly status: number;
  /** Whole header lines. */
  readonly headers: string;
  readonly body: string | Buffer;
}

/** `metadata` is the body of a good answer to this token. */
export function answerOf(behaviour: Behaviour, metadata: () => string): Answer {
  const status = behaviour.status ?? 200;
  const body = behaviour.body ?? (status === 200 ? metadata() : { error: `answered ${status}` });
  const isText = typeof body === "string" || Buffer.isBuffer(body);
  return { status, headers: headerLines(behaviour), body: isText ? body : JSON.stringify(body) };
}

const json = "content-type: application/json\r\n";

function headerLines({ headers = {}, retryAfter }: Behaviour): string {
  let lines = "content-type" in headers ? "" : json;
  if (retryAfter !== undefined) lines += `retry-after: ${retryAfter}\r\n`;
  for (const [name, value] of Object.entries(headers)) lines += `${name}: ${value}\r\n`;
  return lines;
}

/** What the tests' Metadata APIs say of a token. */
export function sampleMetadata(tokenId: string): object {
  return {
    name: `Token #${tokenId}`,
    image: `https://cdn.example/${tokenId}.png`,
    attributes: [{ trait_type: "level", value: 1 }],
  };
}

/** The same as text, of exactly `bytes` bytes when that is enough for it. Another `revision` is another text. */
export function metadataText(tokenId: string, { revision, bytes }: { revision: number; bytes: number | null }): string {
  const text = JSON.stringify({ ...sampleMetadata(tokenId), revision });
  if (bytes === null) return text;
  const fillerBytes = Math.max(0, bytes - text.length - emptyFiller.length);
  return `${text.slice(0, -1)},"filler":"${"x".repeat(fillerBytes)}"}`;
}

const emptyFiller = ',"filler":""';
