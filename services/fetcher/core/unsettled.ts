/** What was begun and has not ended, and who waits for that. */
export class Unsettled {
  readonly #fail: (cause: unknown) => void;
  #count = 0;
  #onSettled: (() => void) | undefined;

  /** `fail`: whatever is thrown is a bug. */
  constructor(fail: (cause: unknown) => void) {
    this.#fail = fail;
  }

  /** Counts until `then` has returned. */
  track<R>(task: Promise<R>, then: (result: R) => void): void {
    this.#count += 1;
    void task.then(then).catch(this.#fail).then(this.#settle);
  }

  /** When nothing is left; asked once. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#onSettled = resolve;
      if (this.#count === 0) resolve();
    });
  }

  readonly #settle = (): void => {
    this.#count -= 1;
    if (this.#count === 0) this.#onSettled?.();
  };
}
