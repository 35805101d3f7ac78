import type { ServiceName } from "../../../deploy/development/service-process.ts";
import { type CrashPoint, crashPoints } from "../../../services/common/lifecycle/crash-points.ts";
import type { Scenario } from "../scenario.ts";

/** How often a place is passed under the usual load, at least: the crash comes at one of these, as the seed decides. */
const passes: Readonly<Record<CrashPoint, number>> = {
  "before-publish": 10,
  "before-refresh-rows": 10,
  "after-refresh-rows": 10,
  "before-fan-out": 10,
  "half-fan-out": 10,
  "after-fan-out": 10,
  "before-fetch": 200,
  "mid-fetch": 200,
  "after-fetch": 200,
  "after-retry-produce": 8,
  "after-outcome": 200,
  "after-states": 6,
  "after-token-rows": 6,
  "before-completion-mark": 4,
  "after-completion-mark": 4,
  "after-completion-event": 4,
};

function scenarioAt(service: ServiceName, point: CrashPoint): Scenario {
  return {
    name: `crash-${point}`,
    title: `${service} is killed ${point.replaceAll("-", " ")}, and started again: everything completes, nothing counts twice`,
    run: (world) => world.crashUnderLoad(service, point, world.draw(1, passes[point])),
  };
}

export const crashScenarios: readonly Scenario[] = (["ingress", "splitter", "fetcher", "aggregator"] as const).flatMap(
  (service) => crashPoints[service].map((point) => scenarioAt(service, point)),
);
