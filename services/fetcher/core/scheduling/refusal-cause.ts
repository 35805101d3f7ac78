const rememberedCount = 32;

/**
 * Whether a host refuses for the number of calls at once, or for their number in a second. It does not say; but when it counts calls
 * at once, then hardly a call is taken that was started with as many others as a refused one.
 */
export class RefusalCause {
  readonly #inFlight = new Uint16Array(rememberedCount);
  readonly #taken = new Uint8Array(rememberedCount);
  #count = 0;

  record(inFlight: number, taken: boolean): void {
    const place = this.#count % rememberedCount;
    this.#inFlight[place] = inFlight;
    this.#taken[place] = taken ? 1 : 0;
    this.#count += 1;
  }

  /** The cause of a refusal of a call that was the n-th at once. `paced`: a rate that the host takes is known and kept. */
  of(inFlight: number, paced: boolean): "concurrency" | "rate" {
    let taken = 0;
    let takenAsMany = 0;
    for (let place = 0; place < Math.min(this.#count, rememberedCount); place++) {
      if (this.#taken[place] === 0) continue;
      taken += 1;
      if ((this.#inFlight[place] ?? 0) >= inFlight) takenAsMany += 1;
    }
    // A call alone is refused by no host that counts calls at once.
    return inFlight > 1 && takenAsMany <= taken / (paced ? 4 : 2) ? "concurrency" : "rate";
  }
}
