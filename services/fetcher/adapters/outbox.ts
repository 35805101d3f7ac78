import { AbandonedError } from "../../common/errors.ts";
import type { Codec, OutgoingRecord, RecordProducer } from "../../common/kafka/contracts.ts";
import type { Topics } from "../../common/kafka/topics.ts";
import type { Conclusion } from "../core/attempt-rules.ts";
import type { Delivery } from "../core/pipeline.ts";

/** The records that the fetcher writes. */
export interface Outbox {
  /** Tried until it is acknowledged, as long as `wanted` says yes before each try. */
  deliver(conclusion: Conclusion, wanted: () => boolean): Promise<Delivery>;
  /** Bytes that are not acknowledged yet. */
  readonly pendingBytes: number;
}

export function createOutbox(parts: { producer: RecordProducer; codec: Codec; topics: Topics }): Outbox {
  const { producer, codec, topics } = parts;
  let pendingBytes = 0;
  const recordOf = (conclusion: Conclusion): OutgoingRecord => {
    if (conclusion.kind === "retry") {
      const { tier, refresh } = conclusion;
      return { topic: tier.name, key: String(refresh.project_id), value: codec.encode(tier.name, refresh) };
    }
    const { name } = topics.tokenOutcome;
    return { topic: name, key: conclusion.outcome.collection_address, value: codec.encode(name, conclusion.outcome) };
  };
  return {
    async deliver(conclusion, wanted) {
      const record = recordOf(conclusion);
      pendingBytes += record.value.length;
      try {
        const [result] = await producer.deliver([record], { mayAct: wanted });
        return result?.ok === false ? "too_large" : "acknowledged";
      } catch (error) {
        if (error instanceof AbandonedError) return "abandoned";
        throw error;
      } finally {
        pendingBytes -= record.value.length;
      }
    },
    get pendingBytes() {
      return pendingBytes;
    },
  };
}
