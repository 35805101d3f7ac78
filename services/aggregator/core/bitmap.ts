/** Bitmaps by ordinal: bit (ordinal & 7) of byte (ordinal >> 3). Values: a changed bitmap is a copy. */

export function emptyBitmap(total: number): Uint8Array {
  return new Uint8Array((total + 7) >> 3);
}

export function hasBit(bitmap: Uint8Array, ordinal: number): boolean {
  return ((bitmap[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0;
}

export function withBit(bitmap: Uint8Array, ordinal: number): Uint8Array {
  // Not slice: a stored bitmap is a Buffer, and the slice of a Buffer is the same memory.
  const copy = new Uint8Array(bitmap);
  copy[ordinal >> 3] = (copy[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
  return copy;
}

const bitsOfByte = Uint8Array.from({ length: 256 }, (_, byte) => byte.toString(2).replaceAll("0", "").length);

/** How many ordinals are in the bitmap. */
export function countBits(bitmap: Uint8Array): number {
  let bits = 0;
  for (const byte of bitmap) bits += bitsOfByte[byte] ?? 0;
  return bits;
}
