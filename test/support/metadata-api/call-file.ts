import { once } from "node:events";
import { createWriteStream } from "node:fs";
import type { CallRecord } from "./call-log.ts";

const flushMs = 100;

/** Appends calls to a file, a line of JSON each, a few times a second: a write for each would cost more than the call. */
export interface CallFile {
  add(record: CallRecord): void;
  /** When all of it is in the file. */
  close(): Promise<void>;
}

/** Rejects when the file cannot be opened. */
export async function openCallFile(path: string): Promise<CallFile> {
  const stream = createWriteStream(path, { flags: "a" });
  await once(stream, "open");
  let lines = "";
  const flush = () => {
    if (lines !== "") stream.write(lines);
    lines = "";
  };
  const timer = setInterval(flush, flushMs);
  return {
    add: (record) => {
      lines += `${JSON.stringify(record)}\n`;
    },
    close: async () => {
      clearInterval(timer);
      flush();
      stream.end();
      await once(stream, "close");
    },
  };
}
