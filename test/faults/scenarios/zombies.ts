import type { ServiceName } from "../../../deploy/development/service-process.ts";
import type { LoadOptions } from "../load.ts";
import type { Scenario } from "../scenario.ts";
import { sessionTimeoutMs } from "../stage.ts";
import { repeatsOf } from "../world.ts";

/** Some fifteen seconds: there is work before, during and after a pause that outlasts the session. */
export const longLoad: Partial<LoadOptions> = { refreshes: 30, pauseMs: 1_500 };
const pauseMs = sessionTimeoutMs + 3_000;
const consumers = ["splitter", "fetcher", "aggregator"] as const;

function zombie(service: ServiceName): Scenario {
  return {
    name: `zombie-${service}`,
    title: `a ${service} stands still for longer than its session, another takes over, and the first wakes up: it changes nothing`,
    async run(world) {
      await world.fleet.start(service, { slot: 2 });
      await world.startLoad(longLoad);
      await world.calls(world.draw(30, 120));
      world.fleet.pause(service);
      world.fault(`SIGSTOP to ${service}`, { repeats: repeatsOf(service) });
      await world.sleep(pauseMs);
      world.fleet.resume(service);
      // It rejoins, and the partitions move once more.
      world.fault(`SIGCONT to ${service}`, { repeats: repeatsOf(service) });
    },
  };
}

function standstill(service: ServiceName): Scenario {
  return {
    name: `standstill-${service}`,
    title: `the only ${service} stands still for longer than its session, and goes on by itself`,
    async run(world) {
      await world.startLoad(longLoad);
      await world.calls(world.draw(30, 120));
      world.fleet.pause(service);
      await world.sleep(pauseMs);
      world.fleet.resume(service);
      world.fault(`SIGSTOP to ${service} for ${pauseMs} ms`, { repeats: repeatsOf(service) });
    },
  };
}

export const zombieScenarios: readonly Scenario[] = [
  ...consumers.map(zombie),
  ...(["ingress", ...consumers] as const).map(standstill),
];
