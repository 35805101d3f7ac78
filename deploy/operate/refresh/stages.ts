import { createGroupLag, type GroupLag } from "../../../services/common/kafka/consume/group-lag.ts";
import { partitionOf } from "../../../services/common/kafka/partitioning.ts";
import type { TopicDefinition } from "../../../services/common/kafka/topics.ts";
import type { RefreshWatchdog } from "../../../services/common/messages/records.ts";
import { readLetters } from "../dead-letters/letters.ts";
import type { Tools } from "../program.ts";
import { logRanges, readLog } from "../read-log.ts";
import type { OpenLetters, PendingCheck, StageLag, StoredRefresh } from "./facts.ts";

/** How far each group is on the way of a refresh. Without stored facts only the splitter's place is known. */
export async function readLags(tools: Tools, refreshId: string, stored: StoredRefresh | undefined): Promise<StageLag[]> {
  const { topics, settings } = tools;
  const look = lookIn(createGroupLag(tools.kafka), settings.GROUP_PREFIX);
  const split = look("splitter", "splitter", topics.refreshRequested, refreshId);
  if (stored === undefined) return [await split];
  const project = String(stored.projectId);
  return Promise.all([
    split,
    look("fetcher", "fetcher", topics.tokenRequested, project),
    ...topics.retryTiers.map((tier) => look("delay tier", "fetcher", tier, project)),
    look("aggregator", "aggregator", topics.tokenOutcome, stored.collection),
  ]);
}

function lookIn(groupLag: GroupLag, groupPrefix: string) {
  return async (stage: StageLag["stage"], group: string, topic: TopicDefinition, key: string): Promise<StageLag> => {
    const partition = partitionOf(key, topic.partitions);
    const lag = await groupLag.lag(`${groupPrefix}.${group}`, [{ topic: topic.name, partition }]);
    return { stage, topic: topic.baseName, partition, delayMs: topic.delayMs, lag };
  };
}

/** The watchdog's due times follow the broker's clock: this far ours may be away from it. */
const clockDoubtMs = 10 * 60_000;

/** A chain has one check waiting, appended within the last delay; undefined where none is found. */
export async function readPendingCheck(tools: Tools, refreshId: string): Promise<PendingCheck | undefined> {
  const topic = tools.topics.watchdog;
  const delayMs = topic.delayMs ?? 0;
  const partition = partitionOf(refreshId, topic.partitions);
  const ranges = await logRanges(tools.kafka, topic.name, Date.now() - delayMs - clockDoubtMs);
  const codec = await tools.codec([topic]);
  let found: PendingCheck | undefined;
  await readLog(tools.kafka, {
    topic,
    ranges: ranges.filter((range) => range.partition === partition),
    groupPrefix: tools.settings.GROUP_PREFIX,
    onRecord: async ({ key, value, timestampMs }) => {
      if (key?.toString() !== refreshId) return;
      const decoded = await codec.decode<RefreshWatchdog>(topic.name, value);
      if (decoded.ok) found = { watchdog: decoded.value, dueMs: timestampMs + delayMs };
    },
  });
  return found;
}

/** Open dead letters that may hold a part of a refresh: by their key, which says no more than project or collection. */
export async function readOpenLetters(tools: Tools, refreshId: string, stored: StoredRefresh | undefined): Promise<OpenLetters> {
  const keys = stored === undefined ? [refreshId] : [refreshId, String(stored.projectId), stored.collection];
  const names = new Map(tools.topics.all.map(({ name, baseName }) => [name, baseName]));
  const letters = await readLetters(tools);
  return letters
    .filter(({ key, marker }) => marker === undefined && keys.includes(key))
    .map(({ id, key, origin }) => ({ id, topic: names.get(origin.topic) ?? origin.topic, ofRefresh: key === refreshId }));
}
