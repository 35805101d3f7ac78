import type { ServiceName } from "../../../deploy/development/service-process.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { Scenario } from "../scenario.ts";
import { sessionTimeoutMs } from "../stage.ts";
import type { World } from "../world.ts";

const steadyLoad = { refreshes: 160, mostTokens: 20, owners: 4, pauseMs: 800, again: 0 };
const levelLooks = 20;
const lookEveryMs = 250;
const mostRecoveryMs = 120_000;

const underWay = ({ account, progress }: World): number =>
  account.accepted.filter(({ refreshId }) => !progress.hasEnded(refreshId)).length;

/** The most refreshes under way at once while nothing is broken. */
async function usualLevel(world: World): Promise<number> {
  world.tell("looking at the usual number of refreshes under way");
  let most = 1;
  for (let look = 0; look < levelLooks; look += 1) {
    most = Math.max(most, underWay(world));
    await world.sleep(lookEveryMs);
  }
  return most;
}

/** Measured and told, not judged: how fast a machine is is no guarantee. */
function recovery(service: ServiceName): Scenario {
  return {
    name: `recovery-${service}`,
    title: `kill -9 of ${service} under steady load, and up again after five seconds: how long until no more is under way than before`,
    async run(world) {
      const load = await world.startLoad(steadyLoad);
      await load.accepted(10);
      const level = await usualLevel(world);
      const killedAtMs = performance.now();
      await world.kill(service);
      await world.sleep(5_000);
      await world.fleet.start(service);
      const outageMs = performance.now() - killedAtMs;
      const peak = underWay(world);
      const isBack = waitFor(
        "the usual number of refreshes under way",
        () => underWay(world),
        (count) => count <= level,
        { withinMs: mostRecoveryMs, everyMs: 50 },
      );
      const back = await isBack.then(
        () => `${level} again`,
        () => `${underWay(world)} still`,
      );
      const tookMs = performance.now() - killedAtMs;
      const goalMs = 2 * outageMs + sessionTimeoutMs;
      const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
      world.measure(
        `${service} away for ${seconds(outageMs)}: ${level} refreshes under way before, ${peak} at its return, ` +
          `${back} ${seconds(tookMs)} after the kill (goal ${seconds(goalMs)}: ${tookMs <= goalMs ? "reached" : "missed"})`,
      );
      await load.stop();
    },
  };
}

export const recoveryScenarios: readonly Scenario[] = (["ingress", "splitter", "fetcher", "aggregator"] as const).map(recovery);
