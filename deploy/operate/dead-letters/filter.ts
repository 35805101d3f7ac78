import type { SettledLetter } from "./letters.ts";

/** Which letters a command is about. What is undefined does not matter; without ids, the others choose. */
export interface LetterFilter {
  readonly ids: readonly string[];
  /** A part of the source topic's name. */
  readonly topic?: string | undefined;
  readonly cause?: string | undefined;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  readonly openOnly: boolean;
}

export function matches(filter: LetterFilter, letter: SettledLetter): boolean {
  const { ids, topic, cause, sinceMs, untilMs, openOnly } = filter;
  return (
    (ids.length === 0 || ids.includes(letter.id)) &&
    (topic === undefined || letter.origin.topic.includes(topic)) &&
    (cause === undefined || letter.cause === cause) &&
    (sinceMs === undefined || letter.atMs >= sinceMs) &&
    (untilMs === undefined || letter.atMs < untilMs) &&
    (!openOnly || letter.marker === undefined)
  );
}

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90m`, `2h` and `3d` before now, or an ISO 8601 time; undefined for another text. */
export function parseTime(text: string, nowMs: number): number | undefined {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (count !== undefined && unit !== undefined) return nowMs - Number(count) * (unitMs[unit] ?? 0);
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
