import { styleText } from "node:util";

/** Where progress goes. Tests pass `silent`. */
export interface Reporter {
  line(text: string): void;
  /** Shows what is being waited for, with the seconds, until `work` settles. */
  during<Result>(describe: () => string, work: Promise<Result>): Promise<Result>;
}

export const silent: Reporter = {
  line: () => undefined,
  during: (_describe, work) => work,
};

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const frameMs = 100;
/** In a log file a line that says "still at it" is wanted rarely: only so that nobody takes long work for a hang. */
const plainLineMs = 5_000;

/** A spinner on a terminal, plain lines everywhere else. */
export function createReporter(stream: NodeJS.WriteStream): Reporter {
  const live = new Set<() => string>();
  const clear = () => (stream.isTTY && live.size > 0 ? stream.write("\r\x1b[2K") : undefined);
  const line = (text: string) => {
    clear();
    stream.write(`${text}\n`);
  };

  async function during<Result>(describe: () => string, work: Promise<Result>): Promise<Result> {
    const begin = performance.now();
    const text = () => `${describe()} ${Math.round((performance.now() - begin) / 1000)} s`;
    live.add(text);
    const timer = setInterval(() => (stream.isTTY ? draw() : line(text())), stream.isTTY ? frameMs : plainLineMs);
    try {
      return await work;
    } finally {
      clearInterval(timer);
      clear();
      live.delete(text);
    }
  }

  function draw() {
    const frame = frames[Math.floor(performance.now() / frameMs) % frames.length] ?? "";
    const text = [...live].map((describe) => describe()).join(" · ");
    stream.write(`\r\x1b[2K${paint(stream, "cyan", frame)} ${text.slice(0, (stream.columns || 80) - 3)}`);
  }
  return { line, during };
}

/** Coloured on a terminal (unless NO_COLOR is set), plain otherwise. */
export function paint(stream: NodeJS.WriteStream, colour: "red" | "green" | "yellow" | "cyan" | "dim", text: string): string {
  return styleText(colour, text, { stream });
}
