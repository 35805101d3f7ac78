import type { Scenario } from "./scenario.ts";
import { crashScenarios } from "./scenarios/crash-points.ts";
import { membershipScenarios } from "./scenarios/membership.ts";
import { recordScenarios } from "./scenarios/records.ts";
import { recoveryScenarios } from "./scenarios/recovery.ts";
import { serverScenarios } from "./scenarios/servers.ts";
import { stopScenarios } from "./scenarios/stops.ts";
import { zombieScenarios } from "./scenarios/zombies.ts";

/** Every scenario, in the order in which they run. A file of scenarios is added here. */
export const catalogue: readonly Scenario[] = [
  ...crashScenarios,
  ...stopScenarios,
  ...zombieScenarios,
  ...membershipScenarios,
  ...recoveryScenarios,
  ...recordScenarios,
  ...serverScenarios,
];
