import type { LogRecord } from "../kafka/log.ts";
import type { Book } from "./book.ts";
import { placeOf } from "./log-index.ts";

/** I14: what cannot be read is a dead letter that names its cause and keeps its bytes, and nothing else is. */
export function checkLetters({ index }: Book): string[] {
  const unreadable = new Map(index.unreadable.map((record) => [placeOf(record), record]));
  const letters = index.letters.map((letter) => ({ letter, origin: originOf(letter) }));
  const buried = new Set(letters.map(({ origin }) => origin));
  const missing = [...unreadable.keys()].filter((place) => !buried.has(place));
  return [
    ...missing.map((place) => `I14: nobody can read ${place}, and it is no dead letter`),
    ...letters.flatMap(({ letter, origin }) => {
      const record = unreadable.get(origin);
      if (record === undefined) return [`I14: ${origin} is a dead letter, and could be read`];
      if (text(letter, "cause") !== "undecodable" || text(letter, "message") === "") return [`I14: ${origin} has no cause`];
      return sameBytes(letter, record) ? [] : [`I14: the dead letter of ${origin} has other bytes`];
    }),
  ];
}

function originOf(letter: LogRecord): string {
  const [partition, offset] = [Number(text(letter, "partition")), Number(text(letter, "offset"))];
  return placeOf({ topic: text(letter, "topic"), partition, offset });
}

function text({ headers }: LogRecord, name: string): string {
  return headers[`dead_letter_${name}`]?.toString() ?? "";
}

function sameBytes(letter: LogRecord, record: LogRecord): boolean {
  const none = Buffer.alloc(0);
  const wasNull = text(letter, "value") === "null";
  return wasNull === (record.value === null) && (letter.value ?? none).equals(record.value ?? none);
}
