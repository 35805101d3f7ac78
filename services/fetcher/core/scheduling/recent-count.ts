const slotMs = 50;
const slotCount = 20;

/** How many events there were in the last second, give or take one of its slots. Most limits of hosts are counted by the second. */
export class RecentCount {
  readonly #slots = new Uint32Array(slotCount);
  #latestSlot = 0;
  #total = 0;

  add(nowMs: number): void {
    const slot = this.#advance(nowMs);
    this.#slots[slot] = (this.#slots[slot] ?? 0) + 1;
    this.#total += 1;
  }

  total(nowMs: number): number {
    this.#advance(nowMs);
    return this.#total;
  }

  /** The pace now: that of the last second, or of the last quarter of it when that was quicker. */
  perSecond(nowMs: number): number {
    const latest = this.#advance(nowMs);
    let quarter = 0;
    for (let back = 0; back < slotCount / 4; back++) quarter += this.#slots[(latest + slotCount - back) % slotCount] ?? 0;
    return Math.max(this.#total, 4 * quarter);
  }

  /** Empties the slots that lie more than a second back; gives the place of the current one. */
  #advance(nowMs: number): number {
    const current = Math.floor(nowMs / slotMs);
    const first = Math.max(this.#latestSlot + 1, current - slotCount + 1);
    for (let slot = first; slot <= current; slot++) {
      this.#total -= this.#slots[slot % slotCount] ?? 0;
      this.#slots[slot % slotCount] = 0;
    }
    this.#latestSlot = Math.max(this.#latestSlot, current);
    return this.#latestSlot % slotCount;
  }
}
