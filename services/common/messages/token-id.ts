const largest = (2n ** 256n - 1n).toString();

/** What parseTokenId asks for, as the end of a sentence that names a field. */
export const tokenIdForm = "must be an unsigned 256-bit integer in decimal, without sign or leading zero";

/**
 * The token id when the text is the canonical decimal form of an unsigned 256-bit integer (no sign, no leading zero, ASCII
 * digits only), undefined otherwise: one token has one spelling, so texts can be compared, stored and used as keys.
 */
export function parseTokenId(text: string): string | undefined {
  // The length first and no counting in the pattern: half the time, and a refresh has a thousand.
  if (text.length > largest.length || !/^(?:0|[1-9][0-9]*)$/.test(text)) return undefined;
  // Of two decimal numbers of one length the smaller one sorts first.
  return text.length < largest.length || text <= largest ? text : undefined;
}

/**
 * The bucket of the tokens table: text of id >> 8. Neighbours share a partition and no partition holds more than 256 rows.
 * `tokenId` must have passed parseTokenId.
 */
export function bucketOf(tokenId: string): string {
  // Exact below 2^53, and several times as fast.
  if (tokenId.length <= 15) return String(Math.floor(Number(tokenId) / 256));
  return (BigInt(tokenId) >> 8n).toString();
}
