import { describe, expect, it } from "vitest";
import {
  type ArmedCrash,
  type CrashPoint,
  type CrashPoints,
  crashPoints,
  createCrashPoints,
  parseCrashPoint,
} from "../../../../services/common/lifecycle/crash-points.ts";

/** A process whose end is an error, and what it did until then. */
function armed(point: CrashPoint, nth = 1) {
  const done: string[] = [];
  const die = (crash: ArmedCrash): never => {
    throw new Error(`dead at ${crash.point}`);
  };
  const work = async (what: string): Promise<string> => {
    done.push(what);
    return what;
  };
  return { points: createCrashPoints({ point, nth }, die), done, work };
}

describe("CRASH_POINT", () => {
  it.each([
    ["splitter", "half-fan-out", { point: "half-fan-out", nth: 1 }],
    ["fetcher", "after-fetch:17", { point: "after-fetch", nth: 17 }],
    ["fetcher", "", undefined],
  ])("of %s may be '%s'", (service, text, expected) => {
    expect(parseCrashPoint(service, { CRASH_POINT: text })).toEqual({ ok: true, armed: expected });
  });

  it.each([
    ["splitter", "after-fetch"],
    ["splitter", "half-fan-out:0"],
    ["splitter", "half-fan-out:x"],
    ["registry", "before-publish"],
  ])("of %s may not be '%s'", (service, text) => {
    expect(parseCrashPoint(service, { CRASH_POINT: text })).toMatchObject({ ok: false });
  });

  it("is refused in production, whatever it says", () => {
    const refused = parseCrashPoint("splitter", { CRASH_POINT: "half-fan-out", NODE_ENV: "production" });
    expect(refused).toEqual({ ok: false, problem: "CRASH_POINT: must not be set in production" });
  });

  it("has a name of its own for every place", () => {
    const names = Object.values(crashPoints).flat();
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a place that is not set", () => {
  it.each<[string, CrashPoints]>([
    ["without any", createCrashPoints(undefined, () => undefined)],
    ["with another one", createCrashPoints({ point: "after-fetch", nth: 1 }, () => undefined)],
  ])("costs nothing: the work is the same function, %s", (_what, points) => {
    const { work } = armed("after-fetch");
    const many = async (items: readonly string[], _options: undefined) => items;
    expect(points.before("before-fetch", work)).toBe(work);
    expect(points.amid("mid-fetch", work)).toBe(work);
    expect(points.after("after-outcome", work)).toBe(work);
    expect(points.halfway("half-fan-out", many)).toBe(many);
  });
});

describe("a place that is set ends the process", () => {
  it("before the work", async () => {
    const { points, done, work } = armed("before-fetch");
    await expect(points.before("before-fetch", work)("a")).rejects.toThrow("dead");
    expect(done).toEqual([]);
  });

  it("after the work", async () => {
    const { points, done, work } = armed("after-fetch");
    await expect(points.after("after-fetch", work)("a")).rejects.toThrow("dead");
    expect(done).toEqual(["a"]);
  });

  it("at the nth of the passes that count", async () => {
    const { points, done, work } = armed("after-outcome", 2);
    const wrapped = points.after("after-outcome", work, (what) => what !== "other");
    for (const what of ["a", "other"]) await wrapped(what);
    await expect(wrapped("b")).rejects.toThrow("dead");
    expect(done).toEqual(["a", "other", "b"]);
  });

  it("when the first half of a list is done, and nothing of the second", async () => {
    const { points } = armed("half-fan-out", 2);
    const given: (readonly number[])[] = [];
    const deliver = async (items: readonly number[], _options: undefined) => void given.push(items);
    const wrapped = points.halfway("half-fan-out", deliver);
    await wrapped([1, 2], undefined);
    await expect(wrapped([3, 4, 5], undefined)).rejects.toThrow("dead");
    expect(given).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it("in the middle of work that goes on", async () => {
    const died = Promise.withResolvers<ArmedCrash>();
    const points = createCrashPoints({ point: "mid-fetch", nth: 1 }, died.resolve);
    const answer = Promise.withResolvers<void>();
    const call = points.amid("mid-fetch", () => answer.promise)();
    expect(await died.promise).toEqual({ point: "mid-fetch", nth: 1 });
    answer.resolve();
    await call;
  });
});
