/** Bitmaps by ordinal: bit (ordinal & 7) of byte (ordinal >> 3). */

export function emptyBitmap(total: number): Uint8Array {
  return new Uint8Array((total + 7) >> 3);
}

export function hasBit(bitmap: Uint8Array, ordinal: number): boolean {
  return ((bitmap[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0;
}

export function setBit(bitmap: Uint8Array, ordinal: number): void {
  bitmap[ordinal >> 3] = (bitmap[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
}

export function copyOf(bitmap: Uint8Array): Uint8Array {
  // Not slice: a stored bitmap is a Buffer, and the slice of a Buffer is the same memory.
  return new Uint8Array(bitmap);
}

const bitsOfByte = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/** How many ordinals are in the bitmap. */
export function countBits(bitmap: Uint8Array): number {
  let bits = 0;
  for (const byte of bitmap) bits += bitsOfByte[byte] ?? 0;
  return bits;
}
