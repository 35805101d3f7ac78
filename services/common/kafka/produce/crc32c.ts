/** Castagnoli's polynomial, bits reversed. */
const polynomial = 0x82f63b78;
const bytesAtOnce = 4;

/** Table n: the checksum of one byte with n zero bytes behind it. */
const tables = ((): Int32Array => {
  const made = new Int32Array(256 * bytesAtOnce);
  for (let byte = 0; byte < 256; byte += 1) {
    let sum = byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ polynomial : sum >>> 1;
    made[byte] = sum;
  }
  for (let index = 256; index < made.length; index += 1) {
    const before = made[index - 256] ?? 0;
    made[index] = (before >>> 8) ^ (made[before & 255] ?? 0);
  }
  return made;
})();

/** CRC-32C of the bytes from `start` to `end`. Four bytes a step: less than half the time of one by one, and it is in every call. */
export function crc32c(bytes: Uint8Array, start: number, end: number): number {
  const at = (index: number): number => bytes[index] ?? 0;
  const table = (index: number): number => tables[index] ?? 0;
  let sum = -1;
  let index = start;
  for (; index + bytesAtOnce <= end; index += bytesAtOnce) {
    sum ^= at(index) | (at(index + 1) << 8) | (at(index + 2) << 16) | (at(index + 3) << 24);
    sum = table(768 + (sum & 255)) ^ table(512 + ((sum >>> 8) & 255)) ^ table(256 + ((sum >>> 16) & 255)) ^ table(sum >>> 24);
  }
  for (; index < end; index += 1) sum = (sum >>> 8) ^ table((sum ^ at(index)) & 255);
  return (sum ^ -1) >>> 0;
}
