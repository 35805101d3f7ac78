/** What must never be in a log: README, Guarantees, I17. By its form, so that none has to be known beforehand. */
const secrets = {
  signature: /0x[0-9a-f]{130}/i,
  "API key": /amr_[0-9A-Za-z]{49}/,
  "admin token": /dev-admin-token/,
  "authorization header": /\bBearer\s+[!-~]{8}/,
  // Of every good answer of the simulated Metadata API, and of nothing else.
  "metadata body": /cdn\.example\//,
  "query string": /[?&]canary=/,
} as const;

const keptCount = 20;

/** Reads every line that the services print. */
export class LogWatch {
  #lineCount = 0;
  readonly #leaks: string[] = [];

  take(process: string, line: string): void {
    this.#lineCount += 1;
    for (const [what, pattern] of Object.entries(secrets)) {
      const place = pattern.exec(line)?.index;
      if (place === undefined || this.#leaks.length >= keptCount) continue;
      this.#leaks.push(`${process} logs a ${what}: …${line.slice(Math.max(0, place - 60), place + 20)}…`);
    }
  }

  /** Lines read, and the leaks among them, since the last question. */
  drain(): { readonly lineCount: number; readonly leaks: readonly string[] } {
    const lineCount = this.#lineCount;
    this.#lineCount = 0;
    return { lineCount, leaks: this.#leaks.splice(0) };
  }
}
