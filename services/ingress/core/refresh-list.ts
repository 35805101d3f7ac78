import { z } from "zod";
import { monthFromMicros } from "../../common/clock.ts";

/** A refresh as the list tables know it. */
export interface ListedRefresh {
  readonly refreshId: string;
  readonly collectionAddress: string;
  /** Micros: when it was requested. */
  readonly createdAt: number;
}

/** A place in the order of the lists: newest first, of the same instant the greater id first. */
export interface RefreshPlace {
  readonly createdAt: number;
  readonly refreshId: string;
}

/** The same in a cursor. */
export const refreshPlaceSchema = z.tuple([z.int().min(0), z.uuid()]);

/** Reads one partition of a list table, behind `before`, in the order of the lists, at most `limit` rows. */
export type ReadMonth = (
  projectId: number,
  month: string,
  page: { before: RefreshPlace | undefined; limit: number },
) => Promise<readonly ListedRefresh[]>;

export interface ListOptions {
  readonly projectIds: readonly number[];
  readonly before: RefreshPlace | undefined;
  readonly limit: number;
  readonly nowMicros: number;
  readonly retentionSeconds: number;
  readonly read: ReadMonth;
}

/** Instances' clocks differ: a refresh may stand in a month that has not begun here. */
const skewMicros = 3_600_000_000;

/**
 * The next refreshes of several projects as one list. It walks back month by month, which is how the tables are cut, all
 * projects at once, and stops as soon as it has enough: every refresh of a month is newer than all of the month before.
 */
export async function nextRefreshes(options: ListOptions): Promise<readonly ListedRefresh[]> {
  const { projectIds, before, limit, read } = options;
  const found: ListedRefresh[] = [];
  for (const month of monthsBack(options)) {
    const page = { before, limit: limit - found.length };
    const perProject = await Promise.all(projectIds.map((projectId) => read(projectId, month, page)));
    found.push(...perProject.flat().sort(newestFirst).slice(0, page.limit));
    if (found.length >= limit) break;
  }
  return found;
}

export function newestFirst(a: RefreshPlace, b: RefreshPlace): number {
  if (a.createdAt !== b.createdAt) return b.createdAt - a.createdAt;
  if (a.refreshId === b.refreshId) return 0;
  return a.refreshId < b.refreshId ? 1 : -1;
}

/** From the month of the page's beginning back to the month where everything has expired. */
function monthsBack({ before, nowMicros, retentionSeconds }: ListOptions): string[] {
  const oldest = monthFromMicros(Math.max(0, nowMicros - retentionSeconds * 1_000_000));
  const start = Math.min(before?.createdAt ?? Number.POSITIVE_INFINITY, nowMicros + skewMicros);
  const months: string[] = [];
  for (let month = monthFromMicros(start); month >= oldest; month = monthBefore(month)) months.push(month);
  return months;
}

function monthBefore(month: string): string {
  const firstDayMs = Date.parse(`${month}-01T00:00:00Z`);
  return monthFromMicros((firstDayMs - 1) * 1000);
}
