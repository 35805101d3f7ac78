import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";

/**
 * An API key is `amr_`, 256 random bits in base 62 (43 digits) and the CRC-32 of what stands before it in base 62 (6 digits).
 * The prefix lets scanners find leaked keys, the checksum turns away mistyped and invented ones without a look-up, and letters
 * and digits alone are selected by a double click. Only the SHA-256 of a key is stored: of 256 random bits it cannot be undone.
 */
const prefix = "amr_";
const randomDigits = 43;
const checksumDigits = 6;
const pattern = new RegExp(`^${prefix}[0-9A-Za-z]{${randomDigits + checksumDigits}}$`);
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new key, to be shown once, and its hash, to be stored. `randomBytes`: 32 bytes from a cryptographic source. */
export function createApiKey(randomBytes: Uint8Array): { readonly apiKey: string; readonly hash: string } {
  if (randomBytes.length !== 32) throw new RangeError(`an API key takes 32 random bytes, not ${randomBytes.length}`);
  const head = prefix + base62(BigInt(`0x${Buffer.from(randomBytes).toString("hex")}`), randomDigits);
  const apiKey = head + checksumOf(head);
  return { apiKey, hash: hashOf(apiKey) };
}

/** The hash under which a key would be stored, undefined when the text cannot be a key: wrong form or wrong checksum. */
export function parseApiKey(text: string): { readonly hash: string } | undefined {
  if (!pattern.test(text)) return undefined;
  const head = text.slice(0, -checksumDigits);
  return text === head + checksumOf(head) ? { hash: hashOf(text) } : undefined;
}

const hashOf = (apiKey: string): string => createHash("sha256").update(apiKey).digest("hex");

const checksumOf = (head: string): string => base62(BigInt(crc32(head)), checksumDigits);

function base62(value: bigint, digits: number): string {
  let text = "";
  for (let rest = value; rest > 0n; rest /= 62n) text = alphabet.charAt(Number(rest % 62n)) + text;
  return text.padStart(digits, "0");
}
