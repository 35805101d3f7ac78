import type { Known, Plan } from "./plan.ts";

/**
 * The log is not the one that the stored versions came from: the topic was re-created, or restored from a copy, without a new
 * generation. Writes would lose against what is stored, without a word, so the partition stands still until the generation in
 * deploy/topics.yaml is raised.
 */
export class FencedPartitionError extends Error {
  override readonly name = "FencedPartitionError";
}

/** Why the partition has to stand still, if it has to. `end` is the version of the first record that does not exist yet. */
export function fenceReason(known: Known, plan: Plan, end: number): string | undefined {
  for (const [tokenKey, { version }] of known.heads) {
    if (version >= end) return `token ${tokenKey} has version ${version}, the partition ends before ${end}`;
  }
  for (const [refreshId, { version }] of known.progress) {
    if (version >= end) return `refresh ${refreshId} has version ${version}, the partition ends before ${end}`;
  }
  return plan.contradictions[0];
}
