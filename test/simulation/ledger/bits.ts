/** Bitmaps as the tables hold them, read without the services' own code. */
export function isIn(bitmap: unknown, ordinal: number): boolean {
  return bitmap instanceof Uint8Array && (((bitmap[ordinal >> 3] ?? 0) >> (ordinal & 7)) & 1) === 1;
}

export function ordinalsIn(bitmap: unknown): number[] {
  if (!(bitmap instanceof Uint8Array)) return [];
  return Array.from({ length: bitmap.length * 8 }, (_, ordinal) => ordinal).filter((ordinal) => isIn(bitmap, ordinal));
}
