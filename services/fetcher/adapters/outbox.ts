import { AbandonedError } from "../../common/errors.ts";
import type { Codec, OutgoingRecord, RecordProducer } from "../../common/kafka/contracts.ts";
import type { TopicDefinition, Topics } from "../../common/kafka/topics.ts";
import type { TokenRefresh } from "../../common/messages/records.ts";
import type { Conclusion } from "../core/attempt-rules.ts";
import type { Delivery } from "../core/ports.ts";

/** The records that the fetcher writes. */
export interface Outbox {
  /** Tried until it is acknowledged, as long as `wanted` says yes before each try. */
  deliver(conclusion: Conclusion, wanted: () => boolean): Promise<Delivery>;
  /** One delivery of many: when it is `abandoned`, some may have been acknowledged. */
  move(refreshes: readonly TokenRefresh[], tier: TopicDefinition, wanted: () => boolean): Promise<Delivery>;
  /** Bytes that are not acknowledged yet. */
  readonly pendingBytes: number;
}

export function createOutbox(parts: { producer: RecordProducer; codec: Codec; topics: Topics }): Outbox {
  const { producer, codec, topics } = parts;
  let pendingBytes = 0;
  const tierRecord = (refresh: TokenRefresh, { name }: TopicDefinition): OutgoingRecord => ({
    topic: name,
    key: String(refresh.project_id),
    value: codec.encode(name, refresh),
  });
  const recordOf = (conclusion: Conclusion): OutgoingRecord => {
    if (conclusion.kind === "retry") return tierRecord(conclusion.refresh, conclusion.tier);
    const { name } = topics.tokenOutcome;
    return { topic: name, key: conclusion.outcome.collection_address, value: codec.encode(name, conclusion.outcome) };
  };
  const send = (records: readonly OutgoingRecord[], wanted: () => boolean): Promise<Delivery> => {
    const bytes = records.reduce((sum, { value }) => sum + value.length, 0);
    pendingBytes += bytes;
    return producer.deliver(records, { mayAct: wanted }).then(
      (results) => {
        pendingBytes -= bytes;
        return results.every(({ ok }) => ok) ? "acknowledged" : "too_large";
      },
      (error: unknown) => {
        pendingBytes -= bytes;
        if (error instanceof AbandonedError) return "abandoned";
        throw error;
      },
    );
  };
  return {
    deliver: (conclusion, wanted) => send([recordOf(conclusion)], wanted),
    move: (refreshes, tier, wanted) =>
      send(
        refreshes.map((refresh) => tierRecord(refresh, tier)),
        wanted,
      ),
    get pendingBytes() {
      return pendingBytes;
    },
  };
}
