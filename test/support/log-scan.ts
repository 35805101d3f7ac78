/** What must never be in a log, by its form: README, Guarantees, I17. */
const forms: Readonly<Record<string, RegExp>> = {
  "a signature": /0x[0-9a-f]{130}/i,
  "an API key": /amr_[0-9A-Za-z]{8}/,
  "an authorization header": /\bbearer +[!-~]{4}/i,
  "a query": /[?&](?:page_size|cursor|collection_address|owner_address|token|canary)=/,
  "a request's body": /\\?"token_ids\\?":/,
  // Of every good answer of the simulated Metadata API, and of nothing else.
  "a metadata body": /cdn\.example\//,
  "user information of a URL": /:\/\/[^/\s"\\[]+@/,
};

const shownFindings = 20;

/** Reads every line that services print, and says which of them hold a secret: one by form, or one that the test has used. */
export class LogScan {
  readonly #lines: { readonly source: string; readonly line: string }[] = [];
  readonly #used = new Map<string, string>();

  take(source: string, line: string): void {
    this.#lines.push({ source, line });
  }

  /** `what` names it in a finding. */
  used(what: string, secret: string): void {
    this.#used.set(secret, what);
  }

  findings(): string[] {
    const found = this.#lines.flatMap(({ source, line }) => {
      const byForm = Object.entries(forms).filter(([, form]) => form.test(line));
      const byText = [...this.#used].filter(([secret]) => line.includes(secret)).map(([secret, what]) => [what, secret] as const);
      const all = [...byForm.map(([what, form]) => [what, form.exec(line)?.[0] ?? ""] as const), ...byText];
      return all.map(([what, text]) => `${source} logs ${what}: ${around(line, text)}`);
    });
    return found.slice(0, shownFindings);
  }
}

function around(line: string, text: string): string {
  const place = line.indexOf(text);
  return `…${line.slice(Math.max(0, place - 80), place + 40)}…`;
}
