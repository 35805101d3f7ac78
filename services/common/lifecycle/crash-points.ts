import type { Environment } from "../config/config.ts";

/**
 * Places at which a process can be made to end as by kill -9, so that a test can see what a crash leaves behind just there.
 * `CRASH_POINT=<name>` or `CRASH_POINT=<name>:<nth>`: at the nth time that the place is passed, the first by default.
 *
 * | name                     | service    | done by then                                   | not done yet                        |
 * |--------------------------|------------|------------------------------------------------|-------------------------------------|
 * | `before-publish`         | ingress    | place in the hour taken, key claimed           | refresh.requested                   |
 * | `before-refresh-rows`    | ingress    | refresh.requested acknowledged                 | refresh rows, the answer            |
 * | `after-refresh-rows`     | ingress    | refresh rows                                   | the answer                          |
 * | `before-fan-out`         | splitter   | the refresh was read                           | its tokens                          |
 * | `half-fan-out`           | splitter   | the first half of its tokens acknowledged      | the others, the watchdog's check    |
 * | `after-fan-out`          | splitter   | all tokens and the check acknowledged          | the commit                          |
 * | `before-fetch`           | fetcher    | the token has its turn                         | the call                            |
 * | `mid-fetch`              | fetcher    | the call is under way                          | its answer                          |
 * | `after-fetch`            | fetcher    | answered                                       | its outcome or retry record         |
 * | `after-retry-produce`    | fetcher    | the tier's record acknowledged                 | the commit                          |
 * | `after-outcome`          | fetcher    | the outcome acknowledged                       | the commit                          |
 * | `after-states`           | aggregator | token.state acknowledged                       | token rows                          |
 * | `after-token-rows`       | aggregator | token rows                                     | progress and error rows             |
 * | `before-completion-mark` | aggregator | token rows of the last outcome                 | the progress row that completes     |
 * | `after-completion-mark`  | aggregator | the progress row that completes                | refresh.completed                   |
 * | `after-completion-event` | aggregator | refresh.completed acknowledged                 | the commit                          |
 *
 * Content is stored behind the outcome record here (README, Exactness): "after the fetch, before it is stored" is `after-fetch`, "stored,
 * its outcome not counted" is `after-token-rows`, and "published, not marked as published" is `after-completion-event`.
 */
export const crashPoints = {
  ingress: ["before-publish", "before-refresh-rows", "after-refresh-rows"],
  splitter: ["before-fan-out", "half-fan-out", "after-fan-out"],
  fetcher: ["before-fetch", "mid-fetch", "after-fetch", "after-retry-produce", "after-outcome"],
  aggregator: ["after-states", "after-token-rows", "before-completion-mark", "after-completion-mark", "after-completion-event"],
  registry: [],
} as const;

export type CrashPoint = (typeof crashPoints)[keyof typeof crashPoints][number];

type Work<A extends unknown[], R> = (...args: A) => Promise<R>;

/**
 * Each gives back `work` with the place in it, and `work` itself when that place is not set. `when`, asked of the first argument: only
 * these passes count.
 */
export interface CrashPoints {
  before<A extends unknown[], R>(point: CrashPoint, work: Work<A, R>, when?: (first: A[0]) => boolean): Work<A, R>;
  /** A moment after the work has begun, unless it has ended by then. */
  amid<A extends unknown[], R>(point: CrashPoint, work: Work<A, R>): Work<A, R>;
  after<A extends unknown[], R>(point: CrashPoint, work: Work<A, R>, when?: (first: A[0]) => boolean): Work<A, R>;
  /** When the first half of a list is done, for work that takes one. */
  halfway<I, O, R>(point: CrashPoint, work: Work<[readonly I[], O], R>): Work<[readonly I[], O], R>;
}

/** As in production. */
export const noCrashPoints: CrashPoints = {
  before: (_point, work) => work,
  amid: (_point, work) => work,
  after: (_point, work) => work,
  halfway: (_point, work) => work,
};

export interface ArmedCrash {
  readonly point: CrashPoint;
  /** From 1. */
  readonly nth: number;
}

export type CrashSetting =
  | { readonly ok: true; readonly armed: ArmedCrash | undefined }
  | { readonly ok: false; readonly problem: string };

/** Reads CRASH_POINT, for the service of this name. */
export function parseCrashPoint(service: string, { CRASH_POINT: text = "", NODE_ENV = "" }: Environment): CrashSetting {
  if (text === "") return { ok: true, armed: undefined };
  if (NODE_ENV === "production") return { ok: false, problem: "CRASH_POINT: must not be set in production" };
  const [name = "", nth = "1"] = text.split(":");
  const names: readonly CrashPoint[] = service in crashPoints ? crashPoints[service as keyof typeof crashPoints] : [];
  const point = names.find((known) => known === name);
  if (point !== undefined && /^[1-9]\d{0,8}$/.test(nth)) return { ok: true, armed: { point, nth: Number(nth) } };
  return { ok: false, problem: `CRASH_POINT: must be one of ${names.join(", ") || "none"}, or one of them with :<nth>` };
}

/** Long enough for a request to reach a server on this machine. */
const amidMs = 20;

/** `die` must not return. */
export function createCrashPoints(armed: ArmedCrash | undefined, die: (armed: ArmedCrash) => void): CrashPoints {
  if (armed === undefined) return noCrashPoints;
  let passes = 0;
  const pass = (): void => {
    passes += 1;
    if (passes === armed.nth) die(armed);
  };
  const setAt = <F>(point: CrashPoint, work: F, wrapped: F): F => (point === armed.point ? wrapped : work);
  return {
    before: (point, work, when = always) =>
      setAt(point, work, async (...args) => {
        if (when(args[0])) pass();
        return work(...args);
      }),
    amid: (point, work) =>
      setAt(point, work, (...args) => {
        const done = work(...args);
        const timer = setTimeout(pass, amidMs);
        return done.finally(() => clearTimeout(timer));
      }),
    after: (point, work, when = always) =>
      setAt(point, work, async (...args) => {
        const result = await work(...args);
        if (when(args[0])) pass();
        return result;
      }),
    halfway: (point, work) =>
      setAt(point, work, async (items, options) => {
        if (passes + 1 === armed.nth) await work(items.slice(0, Math.ceil(items.length / 2)), options);
        pass();
        return work(items, options);
      }),
  };
}

const always = (): boolean => true;
