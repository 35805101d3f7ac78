import { loadTopics } from "../../services/common/kafka/topics.ts";
import type { RefreshCompleted, TokenState } from "../../services/common/messages/records.ts";
import { type ReadRecord, readTopic } from "../../test/support/topic-reader.ts";
import { developmentEnvironment } from "../development/environment.ts";

/** A consumer of the public topics, with nothing but stock clients: what any marketplace would see. */
export interface Marketplace {
  /** The latest state of each token of the collection, by token id. */
  states(collectionAddress: string): ReadonlyMap<string, ReadRecord<TokenState>>;
  completion(refreshId: string): ReadRecord<RefreshCompleted> | undefined;
  close(): Promise<void>;
}

export async function openMarketplace(): Promise<Marketplace> {
  const environment = developmentEnvironment();
  const topics = loadTopics({ prefix: environment.TOPIC_PREFIX ?? "" });
  const [states, completions] = await Promise.all([
    readTopic<TokenState>(environment, topics.tokenState.name),
    readTopic<RefreshCompleted>(environment, topics.refreshCompleted.name),
  ]);
  return {
    states(collectionAddress) {
      const latest = new Map<string, ReadRecord<TokenState>>();
      for (const record of states.records) {
        const { collection_address, token_id, version } = record.value;
        if (collection_address !== collectionAddress) continue;
        if (version > (latest.get(token_id)?.value.version ?? 0)) latest.set(token_id, record);
      }
      return latest;
    },
    completion: (refreshId) => completions.records.find(({ key }) => key === refreshId),
    close: async () => {
      await Promise.all([states.close(), completions.close()]);
    },
  };
}
