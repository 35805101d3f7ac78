import { PoisonRecordError } from "../../common/errors.ts";
import type { Codec, OutgoingRecord, RecordProducer } from "../../common/kafka/contracts.ts";
import type { TopicDefinition, Topics } from "../../common/kafka/topics.ts";
import type { HandOver } from "../core/ports.ts";

/**
 * Tokens, outcomes and the next check in one call: the producer keeps their order, and waits once. A record above the size of its
 * topic cannot get smaller: the refresh goes to the dead letters (reserved for our own mistakes; ingress bounds every field).
 */
export function createHandOver(parts: { deliver: RecordProducer["deliver"]; codec: Codec; topics: Topics }): HandOver {
  const { deliver, codec, topics } = parts;
  const record = (topic: TopicDefinition, key: string, value: unknown): OutgoingRecord => ({
    topic: topic.name,
    key,
    value: codec.encode(topic.name, value),
  });
  return async ({ requested, outcomes, check }, signal) => {
    const results = await deliver(
      [
        ...requested.map((token) => record(topics.tokenRequested, String(token.project_id), token)),
        ...outcomes.map((outcome) => record(topics.tokenOutcome, outcome.collection_address, outcome)),
        record(topics.watchdog, check.refresh.refresh_id, check),
      ],
      { signal },
    );
    const refused = results.find((result) => !result.ok);
    if (refused !== undefined) throw new PoisonRecordError(`refresh ${check.refresh.refresh_id}: ${refused.message}`);
  };
}
