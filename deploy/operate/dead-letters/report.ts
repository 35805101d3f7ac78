import type { RawRecord } from "../../../services/common/kafka/contracts.ts";
import { printable, shortened, table, timeText } from "../text.ts";
import { settlements } from "./letter.ts";
import type { SettledLetter } from "./letters.ts";

/** The table of `list`, and how many are in which state. `nameOf` shortens a topic's name. */
export function listText(letters: readonly SettledLetter[], nameOf: (topic: string) => string): string {
  if (letters.length === 0) return "no dead letters\n";
  const rows = letters.map((letter) => [
    letter.id,
    timeText(letter.atMs),
    stateOf(letter),
    letter.cause,
    nameOf(letter.origin.topic),
    `${letter.origin.partition}/${letter.origin.offset}`,
    shortened(letter.key, 44),
    shortened(letter.message, 80),
  ]);
  const columns = ["id", "dead since", "state", "cause", "from topic", "at", "key", "message"];
  return `${table(columns, rows)}\n\n${summaryOf(letters)}\n`;
}

function summaryOf(letters: readonly SettledLetter[]): string {
  const counts = ["open", ...settlements].map((state) => [state, letters.filter((letter) => stateOf(letter) === state).length]);
  return counts
    .filter(([state, count]) => state === "open" || count !== 0)
    .map(([state, count]) => `${count} ${state}`)
    .join(", ");
}

export function stateOf({ marker }: Pick<SettledLetter, "marker">): string {
  return marker?.settlement ?? "open";
}

/** Everything about one letter. `value` is its content in words: decoded, or bytes. */
export function showText(letter: SettledLetter, value: string): string {
  const { origin, marker } = letter;
  const lines: [string, string][] = [
    ["id", letter.id],
    ["state", marker === undefined ? "open" : `${marker.settlement} at ${timeText(marker.atMs)} ${marker.note}`.trim()],
    ["dead since", timeText(letter.atMs)],
    ["cause", letter.cause],
    ["message", letter.message],
    ["from", `${origin.topic}, partition ${origin.partition}, offset ${origin.offset}, appended ${timeText(origin.timestampMs)}`],
    ["by", `${origin.service} (group ${origin.group})`],
    ["key", letter.key],
    ...Object.entries(letter.headers).map(([name, text]): [string, string] => [`header ${name}`, String(text)]),
    ...(letter.lost === undefined ? [] : [["replay", `impossible: ${letter.lost}`] as [string, string]]),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const text = lines.map(([name, line]) => `${printable(name).padEnd(width)}  ${printable(line)}\n`).join("");
  return `${text}\nvalue, ${letter.valueBytes} bytes:\n${value}\n`;
}

const shownBytes = 512;
const longestText = 2_000;

/** A decoded value as indented JSON, long texts cut. */
export function decodedText(value: unknown): string {
  const cut = (_name: string, field: unknown) => (typeof field === "string" ? shortened(field, longestText) : field);
  return JSON.stringify(value, cut, 2).split("\n").map(printable).join("\n");
}

/** The first bytes in hexadecimal, 32 to a line, with what of them is text. */
export function bytesText({ value }: RawRecord): string {
  const bytes = (value ?? Buffer.alloc(0)).subarray(0, shownBytes);
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; start += 32) {
    const line = bytes.subarray(start, start + 32);
    lines.push(`${line.toString("hex").padEnd(64)}  ${line.toString("latin1").replaceAll(/[^ -~]/g, ".")}`);
  }
  return lines.join("\n");
}
