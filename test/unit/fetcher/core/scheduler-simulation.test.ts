import { describe, expect, it } from "vitest";
import { AdaptiveScheduler } from "../../../../services/fetcher/core/scheduling/adaptive-scheduler.ts";
import { seeded } from "./simulation/events.ts";
import {
  type Changing,
  concurrencyLimited,
  flaky,
  type Host,
  hanging,
  queueing,
  rateLimited,
  unlimited,
} from "./simulation/hosts.ts";
import { Ledger } from "./simulation/ledger.ts";
import { runRandomWorld } from "./simulation/random-world.ts";
import { type SimulatedTask, type Tenant, World } from "./simulation/world.ts";

type Random = () => number;
const work = (latencyMs: number, random: Random) => ({ latencyMs: 0.7 * latencyMs, jitter: 0.5, random });

/** One host that always has enough to do. */
function alone(
  makeHost: (random: Random) => Host,
  options: { networkMs: number; seconds: number; perSecond: number; seed?: number },
) {
  const random = seeded(options.seed ?? 1);
  const scheduler = new AdaptiveScheduler<SimulatedTask>({ perQueue: 256, total: 512 });
  const ledger = new Ledger();
  const world = new World({ scheduler, random, watchers: [ledger] });
  const tenant = { queue: "1 https://api.example", host: makeHost(random), networkMs: options.networkMs };
  for (let second = 0; second < options.seconds; second++) {
    if (scheduler.waiting < 5_000) world.add(tenant, Math.ceil(2 * options.perSecond));
    world.run((second + 1) * 1_000);
  }
  return ledger;
}

describe("a host with a hidden limit", () => {
  const latencies = [5, 100, 300];
  const counters = ["fixedWindow", "slidingWindow", "tokenBucket"] as const;
  const limits = [2, 10, 50, 500];
  const worlds = counters.flatMap((counter) =>
    limits.flatMap((limit) => latencies.map((latencyMs) => [counter, limit, latencyMs] as const)),
  );

  it.each(worlds)("of a second (%s), %i, gives nearly all of it at %i ms, and fails no token for our speed", (...world) => {
    const [counter, limit, latencyMs] = world;
    const seconds = limit < 10 ? 200 : 60;
    const ledger = alone((random) => rateLimited(work(latencyMs, random), { limit: () => limit, counter }), {
      networkMs: 0.3 * latencyMs,
      seconds,
      perSecond: limit,
    });
    expect(ledger.takenBetween(10, seconds) / (seconds - 10) / limit).toBeGreaterThan(0.8);
    expect(ledger.refusedShare(10, seconds)).toBeLessThan(0.055);
    expect(ledger.failedByRefusal).toBe(0);
  });

  it.each([2, 4, 16, 64, 128].flatMap((limit) => [20, 300].map((latencyMs) => [limit, latencyMs] as const)))(
    "of %i calls at once gives nearly all of it at %i ms, and fails no token for our speed",
    (limit, latencyMs) => {
      const perSecond = (limit / latencyMs) * 1_000;
      const seconds = perSecond > 5_000 ? 12 : 40;
      const makeHost = (random: Random) =>
        concurrencyLimited({ latencyMs, jitter: 0.5, random }, { limit: () => limit, refusalMs: 2 });
      const ledger = alone(makeHost, { networkMs: 0, seconds, perSecond });
      expect(ledger.takenBetween(seconds / 2, seconds) / (seconds / 2) / perSecond).toBeGreaterThan(0.85);
      expect(ledger.refusedShare(seconds / 2, seconds)).toBeLessThan(0.05);
      expect(ledger.failedByRefusal).toBe(0);
    },
  );

  const steps: readonly [string, number, number][] = [
    ["fixedWindow", 200, 20],
    ["slidingWindow", 200, 100],
    ["tokenBucket", 40, 20],
    ["fixedWindow", 500, 100],
    ["concurrency", 32, 100],
    ["concurrency", 16, 20],
    ["concurrency", 40, 100],
  ];
  it.each(steps)(
    "(%s) of %i at %i ms is found again within 5 s when it falls to a quarter, within 20 s when it is back",
    (...step) => {
      const [kind, high, latencyMs] = step;
      const limit: Changing = (nowMs) => (nowMs >= 60_000 && nowMs < 120_000 ? high / 4 : high);
      const makeHost = (random: Random) =>
        kind === "concurrency"
          ? concurrencyLimited({ latencyMs, jitter: 0.5, random }, { limit, refusalMs: 2 })
          : rateLimited(work(latencyMs, random), { limit, counter: kind as "fixedWindow" });
      const perSecond = kind === "concurrency" ? (high / latencyMs) * 1_000 : high;
      const ledger = alone(makeHost, { networkMs: kind === "concurrency" ? 0 : 0.3 * latencyMs, seconds: 200, perSecond });
      expect(ledger.takenBetween(65, 115) / 50 / (perSecond / 4)).toBeGreaterThan(0.8);
      expect(ledger.refusedShare(65, 115)).toBeLessThan(0.05);
      expect(ledger.takenBetween(140, 200) / 60 / perSecond).toBeGreaterThan(0.85);
      expect(ledger.refusedShare(0, 200)).toBeLessThan(0.05);
      expect(ledger.failedByRefusal).toBe(0);
    },
  );
});

describe("a host", () => {
  it("whose answers take longer the more calls it has is not driven into time-outs", () => {
    const ledger = alone((random) => queueing({ latencyMs: 50, jitter: 0.5, random }, { workers: 4 }), {
      networkMs: 5,
      seconds: 120,
      perSecond: 80,
    });
    expect(ledger.timedOut).toBe(0);
    expect(ledger.takenBetween(5, 120) / 115 / 80).toBeGreaterThan(0.9);
  });

  it.each([
    ["hardly one call", 0.01, 500],
    ["one call in twenty", 0.05, 500],
    ["one call in ten", 0.1, 150],
    ["three calls in ten", 0.3, 5],
  ])("that refuses %s at random fails hardly a token, and is not given up", (_what, share, leastPerSecond) => {
    const ledger = alone((random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share: () => share }), {
      networkMs: 5,
      seconds: 180,
      perSecond: 2_000,
    });
    expect(ledger.takenBetween(60, 180) / 120).toBeGreaterThan(leastPerSecond);
    expect(ledger.failedByRefusal / ledger.closedCount).toBeLessThan(Math.max(0.0003, 2 * share ** 3));
  });

  it.each<[string, Changing, number]>([
    ["ten times as long from one moment to the next", (nowMs) => (nowMs < 5_000 ? 20 : 200), 1_000],
    ["long when it has next to nothing to do", () => 1_500, 140],
    ["long for every tenth call, as on a machine of ours that is busy", (nowMs) => (nowMs % 200 < 20 ? 200 : 20), 4_000],
  ])("that takes %s, and refuses nothing, is used as much as any other", (_what, latency, perSecond) => {
    const host = (random: Random): Host => ({
      arrive: (nowMs) => ({ status: 200, workMs: latency(nowMs) * (0.9 + 0.2 * random()) }),
    });
    const ledger = alone(host, { networkMs: 2, seconds: 40, perSecond: 5_000 });
    const fromSecond = latency(0) > 1_000 ? 25 : 8;
    expect(ledger.takenBetween(fromSecond, 40) / (40 - fromSecond)).toBeGreaterThan(perSecond);
    expect(ledger.timedOut).toBe(0);
  });

  it("that had little to do and was quick is used in full when it becomes slower and gets much to do", () => {
    const random = seeded(1);
    const scheduler = new AdaptiveScheduler<SimulatedTask>({ perQueue: 256, total: 512 });
    const ledger = new Ledger();
    const world = new World({ scheduler, random, watchers: [ledger] });
    const workMs = (nowMs: number) => (nowMs < 5_000 ? 20 : 200) * (0.9 + 0.2 * random());
    const host: Host = { arrive: (nowMs) => ({ status: 200, workMs: workMs(nowMs) }) };
    const tenant: Tenant = { queue: "1 https://api.example", host, networkMs: 0 };
    for (let part = 0; part < 50; part++) world.events.at(part * 100, () => world.add(tenant, 20));
    world.events.at(5_000, () => world.add(tenant, 5_000));
    world.run(12_000);
    expect(ledger.closedCount).toBe(6_000);
  });

  it.each([
    ["one call in a hundred", 0.01, 1_000],
    ["one call in ten", 0.1, 200],
    ["three calls in ten", 0.3, 8],
    ["nine calls in ten", 0.9, 0.2],
  ])("that hangs on %s for ever is not given up for the others", (_what, share, leastPerSecond) => {
    const ledger = alone((random) => hanging({ latencyMs: 50, jitter: 0.5, random }, { share: () => share }), {
      networkMs: 5,
      seconds: 60,
      perSecond: 2_500,
    });
    expect(ledger.takenBetween(10, 60) / 50).toBeGreaterThan(leastPerSecond);
  });

  it("that refuses everything for half a minute fails no token, and is at its old speed within seconds", () => {
    const share: Changing = (nowMs) => (nowMs >= 20_000 && nowMs < 50_000 ? 1 : 0);
    const ledger = alone((random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share }), {
      networkMs: 5,
      seconds: 90,
      perSecond: 500,
    });
    expect(ledger.failedByRefusal).toBe(0);
    expect(ledger.takenBetween(58, 68)).toBeGreaterThan(0.9 * ledger.takenBetween(8, 18));
  });

  it.each<[string, (random: Random) => Host, number]>([
    ["refuses everything", (random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share: () => 1 }), 300],
    ["refuses nine calls in ten", (random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share: () => 0.9 }), 400],
    ["refuses half of its calls", (random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share: () => 0.5 }), 600],
    ["hangs on nine calls in ten", (random) => hanging({ latencyMs: 50, jitter: 0.5, random }, { share: () => 0.9 }), 600],
    ["hangs on everything", (random) => hanging({ latencyMs: 50, jitter: 0.5, random }, { share: () => 1 }), 480],
    [
      "asks for five seconds with each refusal",
      (random) => flaky({ latencyMs: 50, jitter: 0.5, random }, { share: () => 1, retryAfterMs: 5_000 }),
      3_600,
    ],
  ])("that %s lets a thousand tokens have their outcomes", (_what, makeHost, seconds) => {
    const random = seeded(1);
    const scheduler = new AdaptiveScheduler<SimulatedTask>({ perQueue: 256, total: 512 });
    const ledger = new Ledger();
    const world = new World({ scheduler, random, watchers: [ledger] });
    world.add({ queue: "1 https://api.example", host: makeHost(random), networkMs: 5 }, 1_000);
    world.run(seconds * 1_000);
    expect(ledger.closedCount).toBe(1_000);
  });
});

describe("a project beside others that hang on every token", () => {
  function healthyBeside(hangingCount: number) {
    const random = seeded(7);
    const scheduler = new AdaptiveScheduler<SimulatedTask>({ perQueue: 256, total: 256 });
    const ledger = new Ledger("0 https://healthy.example");
    const world = new World({ scheduler, random, watchers: [ledger] });
    for (let index = 1; index <= hangingCount; index++) {
      const host = hanging({ latencyMs: 50, jitter: 0.5, random }, { share: () => 1 });
      world.add({ queue: `${index} https://hanging${index}.example`, host, networkMs: 5 }, 20_000);
    }
    const healthy: Tenant = {
      queue: "0 https://healthy.example",
      host: unlimited({ latencyMs: 20, jitter: 0.5, random }),
      networkMs: 5,
    };
    for (let second = 0; second < 30; second++) {
      for (let part = 0; part < 20; part++) world.events.at(second * 1_000 + part * 50, () => world.add(healthy, 20));
    }
    world.run(31_000);
    const waitsMs = ledger.waitsMs.toSorted((a, b) => a - b);
    return { taken: ledger.takenBetween(0, 31), p99Ms: waitsMs[Math.floor(0.99 * waitsMs.length)] ?? 0 };
  }

  it.each([1, 5, 10])("(%i of them) is hardly slower than alone", (hangingCount) => {
    const [lone, beside] = [healthyBeside(0), healthyBeside(hangingCount)];
    expect(beside.taken).toBeGreaterThan(0.9 * lone.taken);
    expect(beside.p99Ms).toBeLessThan(1.2 * lone.p99Ms);
  });
});

describe("in random worlds", () => {
  const count = Number(process.env.SIMULATION_SEEDS ?? 100);
  const first = Number(process.env.SIMULATION_SEED ?? 1);

  it(`keeps every ceiling, loses nothing and gives every token its outcome (${count} seeds)`, { timeout: 600_000 }, () => {
    for (let seed = first; seed < first + count; seed++) {
      expect(() => runRandomWorld(seed), `replay with SIMULATION_SEED=${seed} SIMULATION_SEEDS=1`).not.toThrow();
    }
  });
});
