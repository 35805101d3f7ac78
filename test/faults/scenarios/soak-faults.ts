import { sessionTimeoutMs } from "../stage.ts";
import { repeatsOf, type World } from "../world.ts";

/** A fault that a soak may make in any minute; whatever it breaks it mends. */
export interface SoakFault {
  readonly name: string;
  run(world: World): Promise<void>;
}

const victims = ["ingress", "splitter", "fetcher", "aggregator"] as const;
/** The first instances live from the beginning to the end, so that their memory can be compared. */
const slot = 2;

const victimOf = (world: World) => victims[world.draw(0, victims.length - 1)] ?? "fetcher";

export const soakFaults: readonly SoakFault[] = [
  {
    name: "kill",
    async run(world) {
      const service = victimOf(world);
      await world.kill(service, { slot });
      await world.sleep(world.draw(100, 8_000));
      await world.fleet.start(service, { slot });
      world.fault(`${service} joined`, { repeats: repeatsOf(service) });
    },
  },
  {
    name: "zombie",
    async run(world) {
      const service = victimOf(world);
      world.fleet.pause(service, { slot });
      world.fault(`SIGSTOP to ${service}`, { repeats: repeatsOf(service) });
      await world.sleep(sessionTimeoutMs + world.draw(1_000, 6_000));
      world.fleet.resume(service, { slot });
      world.fault(`SIGCONT to ${service}`, { repeats: repeatsOf(service) });
    },
  },
  {
    name: "pause",
    async run(world) {
      const service = victimOf(world);
      world.fleet.pause(service, { slot: world.draw(1, 2) });
      await world.sleep(world.draw(200, 2_000));
      for (const each of [1, slot]) world.fleet.resume(service, { slot: each });
      world.fault(`SIGSTOP to ${service} for a moment`, { repeats: repeatsOf(service) });
    },
  },
  {
    name: "leave-and-join",
    async run(world) {
      const service = victimOf(world);
      await world.stop(service, { slot });
      world.fault(`${service} left`, { repeats: repeatsOf(service) });
      await world.sleep(world.draw(100, 8_000));
      await world.fleet.start(service, { slot });
      world.fault(`${service} joined`, { repeats: repeatsOf(service) });
    },
  },
];
