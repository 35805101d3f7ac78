import { isoFromMicros } from "../../services/common/clock.ts";

/** Aligned columns under their names, no trailing blanks. */
export function table(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [columns, ...rows.map((row) => row.map(printable))];
  const widths = columns.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Foreign text for a terminal: control characters, which move the cursor or turn the writing round, as their escapes. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** `2026-01-31T08:15:30Z`; seconds are enough for people. */
export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

export function microsText(micros: number): string {
  return isoFromMicros(micros);
}

export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}
