/** What an owner gets to see of an answer that failed: README, The API, error item. */
export const excerptBytes = 4_096;

const encoder = new TextEncoder();

/**
 * The beginning of a body as text of at most 4 KiB in UTF-8, never half a character. Bytes that are not UTF-8 become U+FFFD, which
 * is why the result is measured again: a wrong byte grows to three.
 */
export function excerptOf(bytes: Uint8Array): string {
  const cut = bytes.length > excerptBytes;
  // A byte order mark is kept: it may be all that is wrong with the body.
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, excerptBytes), { stream: cut });
  const { read } = encoder.encodeInto(text, new Uint8Array(excerptBytes));
  return text.slice(0, read);
}
