import type { Scenario } from "../scenario.ts";
import { repeatsOf, type World } from "../world.ts";

const movers = ["ingress", "splitter", "fetcher", "aggregator"] as const;
const stormLoad = { refreshes: 60, pauseMs: 1_800 };
const everyMs = 3_000;
const moves = 10;

async function pairs(world: World): Promise<void> {
  world.tell("starting a second instance of each service");
  await Promise.all(movers.map((service) => world.fleet.start(service, { slot: 2 })));
  await world.startLoad(stormLoad);
  await world.calls(30);
}

export const membershipScenarios: readonly Scenario[] = [
  {
    name: "members-come-and-go",
    title:
      "two instances of each service, of which one leaves and comes back every few seconds: nothing is lost, nothing counts twice",
    async run(world) {
      await pairs(world);
      for (let move = 0; move < moves; move += 1) {
        const service = movers[(move + world.seed) % movers.length] ?? "fetcher";
        await world.stop(service, { slot: 2 });
        world.fault(`${service} left its group`, { repeats: repeatsOf(service) });
        await world.sleep(everyMs / 2);
        await world.fleet.start(service, { slot: 2 });
        world.fault(`${service} joined its group`, { repeats: repeatsOf(service) });
        await world.sleep(everyMs / 2);
      }
    },
  },
  {
    name: "members-die-and-return",
    title: "two instances of each service, of which any is killed every few seconds and started again",
    async run(world) {
      await pairs(world);
      for (let move = 0; move < moves; move += 1) {
        const service = movers[world.draw(0, movers.length - 1)] ?? "fetcher";
        const slot = world.draw(1, 2);
        await world.kill(service, { slot });
        await world.sleep(world.draw(100, everyMs));
        await world.fleet.start(service, { slot });
        world.fault(`${service} joined its group`, { repeats: repeatsOf(service) });
      }
    },
  },
];
