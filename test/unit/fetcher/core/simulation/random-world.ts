import { AdaptiveScheduler } from "../../../../../services/fetcher/core/scheduling/adaptive-scheduler.ts";
import { seeded } from "./events.ts";
import { concurrencyLimited, flaky, type Host, hanging, queueing, rateLimited, unlimited } from "./hosts.ts";
import { Invariants } from "./invariants.ts";
import { type SimulatedTask, type Tenant, World } from "./world.ts";

const busyMs = 60_000;
/** Long enough for the last token of a host that never answers well. */
const endMs = 7_200_000;

/**
 * Lets a few tenants with hosts of all kinds go through a minute of work, in portions and herds, and through what is left of it.
 * Throws when an invariant breaks, or a token is left without an outcome.
 */
export function runRandomWorld(seed: number): { readonly calls: number } {
  const random = seeded(seed);
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const total = between(1, 64);
  const scheduler = new AdaptiveScheduler<SimulatedTask>({ perQueue: between(1, 256), total });
  const invariants = new Invariants(scheduler, total);
  let calls = 0;
  const count = {
    started: () => {
      calls += 1;
    },
  };
  const world = new World({ scheduler, random, watchers: [invariants, count] });
  for (let index = between(1, 6); index > 0; index--) {
    const tenant = randomTenant(index, random);
    for (let herd = between(1, 4); herd > 0; herd--) {
      world.events.at(between(0, busyMs), () => world.add(tenant, between(1, 60)));
    }
  }
  world.run(endMs);
  if (invariants.openCount > 0) throw new Error(`${invariants.openCount} tokens are left without an outcome`);
  return { calls };
}

function randomTenant(index: number, random: () => number): Tenant {
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  return {
    queue: `${index} https://${between(1, 3)}.example`,
    host: randomHost(random),
    networkMs: between(0, 50),
    maxConcurrency: random() < 0.3 ? between(1, 20) : null,
    maxRequestsPerSecond: random() < 0.3 ? between(1, 200) : null,
  };
}

function randomHost(random: () => number): Host {
  const between = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const work = { latencyMs: between(1, 300), jitter: random(), random };
  const [before, after] = [between(1, 200), between(1, 200)];
  const limit = (nowMs: number) => (nowMs < busyMs / 2 ? before : after);
  const asks = random() < 0.3 ? { retryAfterMs: between(1, 5) * 1_000 } : {};
  const maintenance = { fromMs: between(0, busyMs), lastsMs: between(1_000, 90_000) };
  const within = (nowMs: number) => nowMs >= maintenance.fromMs && nowMs < maintenance.fromMs + maintenance.lastsMs;
  const hosts: readonly (() => Host)[] = [
    () => unlimited(work),
    () => rateLimited(work, { limit, counter: "fixedWindow", ...asks }),
    () => rateLimited(work, { limit, counter: "slidingWindow", ...asks }),
    () => rateLimited(work, { limit, counter: "tokenBucket", ...asks }),
    () => concurrencyLimited(work, { limit, refusalMs: random() < 0.5 ? 1 : work.latencyMs, ...asks }),
    () => queueing(work, { workers: between(1, 8) }),
    () => flaky(work, { share: () => 0.05, ...asks }),
    () => flaky(work, { share: (nowMs) => (within(nowMs) ? 1 : 0), ...asks }),
    () => flaky(work, { share: () => 1, ...asks }),
    () => flaky(work, { share: () => 0.5, ...asks }),
    () => hanging(work, { share: () => 1 }),
    () => hanging(work, { share: (nowMs) => (within(nowMs) ? 1 : 0.05) }),
  ];
  const make = hosts[between(0, hosts.length - 1)];
  return make?.() ?? unlimited(work);
}
