import type { IncomingMessage } from "node:http";
import { type Refusal, refuse } from "./answer.ts";
import { refuseLoad, type Share } from "./load.ts";

export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly refusal: Refusal };

/** JSON is UTF-8 (RFC 8259 section 8.1), so that is the only charset; `+json` types mean something else than what we read. */
const jsonType = /^application\/json[ \t]*(?:;[ \t]*charset=("?)utf-8\1[ \t]*)?$/i;

/**
 * What an over-long body may still send while its 413 is on the way: a client that is cut off while it sends meets a reset instead
 * of the answer. Thrown away as it comes, some milliseconds' work.
 */
const drainedBytes = 8 * 1024 * 1024;

/**
 * Reads a JSON body of at most `maxBytes`. Refusals: 415 for another content type, charset or encoding, 413 for a longer
 * body (by its content-length before a byte of it is read), 400 for an empty, ill-formed or prototype-touching one, 503 where
 * bodies of others have taken the room. However deep the JSON is, the cost is linear and nothing recurses into it here.
 */
export async function readJson(
  request: IncomingMessage,
  { maxBytes, share }: { readonly maxBytes: number; readonly share: Share },
): Promise<JsonBody> {
  const mediaRefusal = checkMedia(request);
  if (mediaRefusal !== undefined) return { ok: false, refusal: mediaRefusal };
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) return tooLarge(request, maxBytes);
  share.stepAside();
  const bytes = await readAll(request, { maxBytes, share });
  if (bytes === "too_large") return tooLarge(request, maxBytes);
  if (bytes === "no_room" || !share.enter()) return { ok: false, refusal: refuseLoad() };
  if (bytes === "aborted") return invalid("the body ended early");
  if (bytes.length === 0) return invalid("the body is empty");
  return parse(bytes);
}

function checkMedia(request: IncomingMessage): Refusal | undefined {
  const types = request.headersDistinct["content-type"] ?? [];
  if (types.length !== 1 || !jsonType.test(types[0] ?? "")) {
    return refuse(415, "unsupported_media_type", "the content type must be application/json, in UTF-8");
  }
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding.toLowerCase() === "identity") return undefined;
  return refuse(415, "unsupported_media_type", "the body must not be compressed", { headers: { "accept-encoding": "identity" } });
}

function readAll(
  request: IncomingMessage,
  { maxBytes, share }: { readonly maxBytes: number; readonly share: Share },
): Promise<Buffer | "too_large" | "no_room" | "aborted"> {
  return new Promise((resolve) => {
    // Copied, not collected: bytes that come one by one, each a Buffer of its own, take five hundred times their room.
    let bytes = Buffer.alloc(0);
    let length = 0;
    let fits = true;
    // Gone before we came to read: no event will follow.
    if (request.destroyed) resolve("aborted");
    request.on("data", (chunk: Buffer) => {
      const start = length;
      length += chunk.length;
      if (length > maxBytes) resolve("too_large");
      // What comes after a refusal is let go: its share has ended.
      fits &&= length <= maxBytes && share.hold(chunk.length);
      if (!fits) return resolve("no_room");
      if (length > bytes.length) bytes = Buffer.concat([bytes], Math.min(2 * length, maxBytes));
      bytes.set(chunk, start);
    });
    request.once("end", () => resolve(bytes.subarray(0, length)));
    // 'close' without 'end' is a client that went away; both settle the promise only once.
    request.once("close", () => resolve("aborted"));
    request.once("error", () => resolve("aborted"));
  });
}

function tooLarge(request: IncomingMessage, maxBytes: number): JsonBody {
  let rest = 0;
  request.on("data", (chunk: Buffer) => {
    rest += chunk.length;
    if (rest > drainedBytes) request.destroy();
  });
  return { ok: false, refusal: refuse(413, "payload_too_large", `the body may have at most ${maxBytes} bytes`) };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function parse(bytes: Buffer): JsonBody {
  try {
    const text = utf8.decode(bytes);
    // The reviver is slow, so it runs only where such a key can be: spelt out, or with an escape in it.
    const suspicious = text.includes("__proto__") || text.includes("\\u");
    return { ok: true, value: suspicious ? JSON.parse(text, refusePrototypeKey) : JSON.parse(text) };
  } catch (error) {
    if (error instanceof PrototypeKey) return invalid("the key __proto__ is not allowed");
    return invalid("the body is not JSON in UTF-8, or nested too deeply");
  }
}

class PrototypeKey extends Error {}

function refusePrototypeKey(key: string, value: unknown): unknown {
  if (key === "__proto__") throw new PrototypeKey();
  return value;
}

function invalid(message: string): JsonBody {
  return { ok: false, refusal: refuse(400, "invalid_request", message) };
}
