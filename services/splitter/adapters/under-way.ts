import type { GroupLag } from "../../common/kafka/consume/group-lag.ts";
import { partitionOf } from "../../common/kafka/partitioning.ts";
import type { Topics } from "../../common/kafka/topics.ts";
import type { IsUnderWay } from "../core/ports.ts";

export function createIsUnderWay(
  groupLag: Pick<GroupLag, "lag">,
  options: { topics: Topics; fetcherGroup: string; aggregatorGroup: string },
): IsUnderWay {
  const { topics, fetcherGroup, aggregatorGroup } = options;
  const fetchTopics = [topics.tokenRequested, ...topics.retryTiers];
  return async (projectId, collectionAddress) => {
    const fetched = fetchTopics.map(({ name, partitions }) => ({
      topic: name,
      partition: partitionOf(String(projectId), partitions),
    }));
    if ((await groupLag.lag(fetcherGroup, fetched)) > 0) return true;
    const { name, partitions } = topics.tokenOutcome;
    const outcomes = { topic: name, partition: partitionOf(collectionAddress, partitions) };
    return (await groupLag.lag(aggregatorGroup, [outcomes])) > 0;
  };
}
