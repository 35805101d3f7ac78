import { expect, it } from "vitest";
import { UnderWay } from "../../../../services/fetcher/core/under-way.ts";
import { Work } from "../../../../services/fetcher/core/work.ts";
import { tokenRefresh } from "./records.ts";

const endpoint = { ok: true, url: "https://a.example", origin: "https://a.example" } as const;

function workOf(changes: Parameters<typeof tokenRefresh>[0]): Work {
  const about = { route: { endpoint, queue: "7 https://a.example" }, positions: [], offeredAtMs: 0, lastAttempt: false };
  return new Work(tokenRefresh(changes), about);
}

it("finds a work by what stays the same when its record comes again, and by nothing less", () => {
  const underWay = new UnderWay();
  const work = workOf({ ordinal: 3 });
  underWay.add(work);
  expect(underWay.get(tokenRefresh({ ordinal: 3, total: 99 }))).toBe(work);
  for (const change of [{ refresh_id: "another" }, { ordinal: 4 }, { attempt: 2 }, { emission: 2 }]) {
    expect(underWay.get(tokenRefresh({ ordinal: 3, ...change }))).toBeUndefined();
  }
});

it("gives every work that was not taken out again", () => {
  const underWay = new UnderWay();
  const works = [{}, { ordinal: 1 }, { refresh_id: "another" }, { attempt: 2 }].map(workOf);
  for (const work of works) underWay.add(work);
  for (const { refresh } of works.slice(1, 3)) underWay.delete(refresh);
  underWay.delete(tokenRefresh({ refresh_id: "unknown" }));
  expect([...underWay]).toEqual([works[0], works[3]]);
});
