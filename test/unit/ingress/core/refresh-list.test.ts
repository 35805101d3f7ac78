import fc from "fast-check";
import { expect, it } from "vitest";
import { monthFromMicros } from "../../../../services/common/clock.ts";
import {
  type ListedRefresh,
  newestFirst,
  nextRefreshes,
  type ReadMonth,
  type RefreshPlace,
} from "../../../../services/ingress/core/refresh-list.ts";

interface Stored extends ListedRefresh {
  readonly projectId: number;
}

const nowMicros = Date.UTC(2026, 2, 15, 12) * 1000;
const retentionSeconds = 90 * 86_400;
const dayMicros = 86_400_000_000;

/** The list table: partitions of project and month, each in the order of the list. */
function tableOf(rows: readonly Stored[], reads: string[] = []): ReadMonth {
  return async (projectId, month, { before, limit }) => {
    reads.push(`${projectId}/${month}`);
    return rows
      .filter((row) => row.projectId === projectId && monthFromMicros(row.createdAt) === month)
      .filter((row) => before === undefined || newestFirst(before, row) < 0)
      .sort(newestFirst)
      .slice(0, limit);
  };
}

const next = (
  rows: readonly Stored[],
  options: { before?: RefreshPlace; limit: number; projectIds?: number[]; reads?: string[] },
) =>
  nextRefreshes({
    projectIds: options.projectIds ?? [1, 2, 3],
    before: options.before,
    limit: options.limit,
    nowMicros,
    retentionSeconds,
    read: tableOf(rows, options.reads),
  });

const stored = fc.record({
  projectId: fc.integer({ min: 1, max: 3 }),
  refreshId: fc.uuid({ version: 7 }),
  collectionAddress: fc.constant("0x"),
  // Few instants, so that many refreshes share one.
  createdAt: fc.integer({ min: 0, max: 89 }).map((days) => nowMicros - days * dayMicros),
});
const table = fc.uniqueArray(stored, { selector: ({ refreshId }) => refreshId, maxLength: 40 });

async function allPages(rows: Stored[], limit: number, between: (page: number) => void = () => undefined): Promise<string[]> {
  const seen: string[] = [];
  let before: RefreshPlace | undefined;
  for (let page = 0; ; page += 1) {
    const found = await next(rows, before === undefined ? { limit } : { limit, before });
    seen.push(...found.map(({ refreshId }) => refreshId));
    before = found.at(-1);
    if (before === undefined) return seen;
    between(page);
  }
}

it("merges projects and months into one list, newest first, in pages that neither skip nor repeat", async () => {
  await fc.assert(
    fc.asyncProperty(table, fc.integer({ min: 1, max: 7 }), async (rows, limit) => {
      const expected = rows.toSorted(newestFirst).map(({ refreshId }) => refreshId);
      expect(await allPages(rows, limit)).toEqual(expected);
    }),
  );
});

it("neither skips nor repeats what was there, whatever is requested meanwhile", async () => {
  await fc.assert(
    fc.asyncProperty(table, table, fc.integer({ min: 1, max: 5 }), async (rows, added, limit) => {
      const there = new Set(rows.map(({ refreshId }) => refreshId));
      const coming = added.filter(({ refreshId }) => !there.has(refreshId)).map((row) => ({ ...row, createdAt: nowMicros }));
      const growing = [...rows];
      const seen = await allPages(growing, limit, (page) => growing.push(...coming.slice(page, page + 1)));
      expect(seen.filter((id) => there.has(id))).toEqual(rows.toSorted(newestFirst).map(({ refreshId }) => refreshId));
      expect(new Set(seen).size).toBe(seen.length);
    }),
  );
});

it("reads no older month when it has enough, and none before everything has expired", async () => {
  const row = { projectId: 1, refreshId: "a", collectionAddress: "0x", createdAt: nowMicros };
  const enough: string[] = [];
  await next([row], { limit: 1, projectIds: [1], reads: enough });
  expect(enough).toEqual(["1/2026-03"]);
  const everything: string[] = [];
  await next([], { limit: 1, projectIds: [1], reads: everything });
  expect(everything).toEqual(["1/2026-03", "1/2026-02", "1/2026-01", "1/2025-12"]);
});

it("begins in the month of its place", async () => {
  const reads: string[] = [];
  await next([], { limit: 1, projectIds: [1], before: { createdAt: Date.UTC(2026, 0, 1) * 1000, refreshId: "a" }, reads });
  expect(reads).toEqual(["1/2026-01", "1/2025-12"]);
});

it("finds a refresh that another instance, its clock ahead, has put into the next month", async () => {
  const lastSecond = Date.UTC(2026, 2, 31, 23, 59, 59) * 1000;
  const row = { projectId: 1, refreshId: "a", collectionAddress: "0x", createdAt: lastSecond + 2_000_000 };
  const found = await nextRefreshes({
    projectIds: [1],
    before: undefined,
    limit: 1,
    nowMicros: lastSecond,
    retentionSeconds,
    read: tableOf([row]),
  });
  expect(found).toHaveLength(1);
});

it("is empty for an owner without projects", async () => {
  expect(await next([], { limit: 5, projectIds: [] })).toEqual([]);
});
