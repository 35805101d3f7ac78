/**
 * Keeps a fault of our own (a broken schema, a bad release) from emptying a topic into the dead letters: after so many records in a
 * row that could not be processed, with none between that could, nothing more is given up.
 */
export class Brake {
  readonly #limit: number;
  #inARow = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get engaged(): boolean {
    return this.#inARow >= this.#limit;
  }

  countPoison(): void {
    this.#inARow += 1;
  }

  countProcessed(): void {
    this.#inARow = 0;
  }

  health(): string | undefined {
    return this.engaged ? `${this.#inARow} records in a row could not be processed: nothing more is dead-lettered` : undefined;
  }
}
