/** What parseAddress asks for, as the end of a sentence that names a field. */
export const addressForm = "must be 0x and 40 hexadecimal digits";

/**
 * The address in lower case when the text is 0x and 40 hexadecimal digits in any case, undefined otherwise. The checksum that
 * mixed case may carry (EIP-55) is not asked for: clients send all three spellings.
 */
export function parseAddress(text: string): string | undefined {
  return /^0x[0-9a-fA-F]{40}$/.test(text) ? text.toLowerCase() : undefined;
}
