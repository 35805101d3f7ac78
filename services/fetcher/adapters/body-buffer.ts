const leastCapacity = 4_096;
const nothing = Buffer.alloc(0);

/**
 * A body as it comes in. The usual one comes in one piece, which is kept as it is; more pieces are copied together at once, because
 * a host may send it byte by byte, and a buffer for each byte would take a hundred times as much memory.
 */
export class BodyBuffer {
  #buffer: Buffer = nothing;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length;
    if (this.#length === 0) this.#buffer = piece;
    else {
      if (length > this.#buffer.length) this.#grow(length);
      piece.copy(this.#buffer, this.#length);
    }
    this.#length = length;
  }

  bytes(): Buffer {
    return this.#length === this.#buffer.length ? this.#buffer : this.#buffer.subarray(0, this.#length);
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2, leastCapacity));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
