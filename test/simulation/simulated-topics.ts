import { loadTopics, type TopicDefinition, type Topics } from "../../services/common/kafka/topics.ts";
import type { WorldPlan } from "./world-plan.ts";

const real = loadTopics();

/** The topics of deploy/topics.yaml, with few partitions: so that what is different meets in one. */
export function simulatedTopics({ partitions, watchdogMs }: Pick<WorldPlan, "partitions" | "watchdogMs">): Topics {
  const narrowed = (topic: TopicDefinition, count: number): TopicDefinition => ({ ...topic, partitions: count });
  const fetch = (topic: TopicDefinition): TopicDefinition => narrowed(topic, partitions.fetch);
  const other = (topic: TopicDefinition): TopicDefinition => narrowed(topic, partitions.other);
  const byRole = {
    refreshRequested: other(real.refreshRequested),
    tokenRequested: fetch(real.tokenRequested),
    retryTiers: real.retryTiers.map(fetch),
    tokenOutcome: narrowed(real.tokenOutcome, partitions.outcome),
    watchdog: { ...other(real.watchdog), delayMs: watchdogMs },
    clock: narrowed(real.clock, 1),
    deadLetter: narrowed(real.deadLetter, 1),
    tokenState: other(real.tokenState),
    refreshCompleted: other(real.refreshCompleted),
  };
  const { retryTiers, ...single } = byRole;
  return { ...byRole, all: [...Object.values(single), ...retryTiers] };
}
