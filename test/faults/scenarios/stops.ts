import type { ServiceName } from "../../../deploy/development/service-process.ts";
import type { Scenario } from "../scenario.ts";

/** No repetition is allowed for it: what was begun is ended, and what was not begun is left to the next. */
function stop(service: ServiceName): Scenario {
  return {
    name: `stop-${service}`,
    title: `SIGTERM to ${service} under load, twice: it drains, exits 0, loses nothing and repeats no call`,
    async run(world) {
      await world.startLoad({ refreshes: 30, pauseMs: 500 });
      for (const [from, to] of [
        [30, 120],
        [250, 400],
      ] as const) {
        await world.calls(world.draw(from, to));
        await world.stop(service);
        await world.fleet.start(service);
      }
    },
  };
}

export const stopScenarios: readonly Scenario[] = (["ingress", "splitter", "fetcher", "aggregator", "registry"] as const).map(
  stop,
);
