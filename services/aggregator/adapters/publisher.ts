import { hash } from "node:crypto";
import { parse as bytesOfUuid } from "uuid";
import { isoFromMicros } from "../../common/clock.ts";
import { PoisonRecordError } from "../../common/errors.ts";
import type { BatchContext, Codec, Headers, OutgoingRecord, RecordProducer } from "../../common/kafka/contracts.ts";
import type { TopicDefinition, Topics } from "../../common/kafka/topics.ts";
import type { RefreshCompleted, TokenState } from "../../common/messages/records.ts";
import type { Publisher } from "../core/ports.ts";

export interface PublisherParts {
  readonly codec: Codec;
  readonly topics: Pick<Topics, "tokenState" | "refreshCompleted">;
  /** Of its own: a refresh that is complete does not wait behind the states of other partitions. */
  readonly states: RecordProducer;
  readonly completions: RecordProducer;
}

type Lease = Pick<BatchContext, "signal" | "mayAct">;

export function createPublisher({ codec, topics, states, completions }: PublisherParts): Publisher {
  return {
    publishStates: (values, lease) =>
      deliver(
        states,
        values.map((value) => stateRecord(topics.tokenState, value, codec)),
        lease,
      ),
    publishCompletions: (values, lease) =>
      deliver(
        completions,
        values.map((value) => completionRecord(topics.refreshCompleted, value, codec)),
        lease,
      ),
  };
}

async function deliver(producer: RecordProducer, records: readonly OutgoingRecord[], lease: Lease): Promise<void> {
  if (records.length === 0) return;
  const results = await producer.deliver(records, { signal: lease.signal, mayAct: lease.mayAct });
  const refused = results.find((result) => !result.ok);
  // The fetcher's cap on bodies is an eighth of what the topic takes: this is a topic with somebody else's settings.
  if (refused !== undefined) throw new PoisonRecordError(`cannot be published: ${refused.message}`);
}

function stateRecord(topic: TopicDefinition, state: TokenState, codec: Codec): OutgoingRecord {
  const key = `${state.collection_address}:${state.token_id}`;
  return {
    topic: topic.name,
    key,
    value: codec.encode(topic.name, state),
    headers: cloudEvent(topic, `token.state:${key}:${state.version}`, state.refreshed_at),
  };
}

function completionRecord(topic: TopicDefinition, completion: RefreshCompleted, codec: Codec): OutgoingRecord {
  return {
    topic: topic.name,
    key: completion.refresh_id,
    value: codec.encode(topic.name, completion),
    headers: cloudEvent(topic, `refresh.completed:${completion.refresh_id}`, completion.completed_at),
  };
}

/** Part of every ce_id: never changed, or a replay after an update would be taken for news. */
const idNamespace = bytesOfUuid("82122cfe-f872-409a-9cf6-32340e45358b");

/** CloudEvents 1.0, Kafka protocol binding, binary content mode. Id and time come from the content: a replay has the same. */
function cloudEvent(topic: TopicDefinition, name: string, timeMicros: number): Headers {
  return {
    ce_specversion: "1.0",
    ce_id: uuidOf(name),
    ce_source: "/asset-metadata-refresh",
    ce_type: topic.baseName.replace(/^public\./, ""),
    ce_time: isoFromMicros(timeMicros),
    "content-type": "application/avro",
  };
}

/** What a UUID is the hash of: the namespace, and behind it the name, which has at most 150 characters. */
const idInput = Buffer.alloc(1_024);
idInput.set(idNamespace);

/** UUID version 5 (RFC 9562, section 5.5). The library's own takes five times as long, for every record. */
function uuidOf(name: string): string {
  const end = idNamespace.length + idInput.write(name, idNamespace.length);
  const digest = hash("sha1", idInput.subarray(0, end));
  const variant = ((Number.parseInt(digest.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${digest.slice(0, 8)}-${digest.slice(8, 12)}-5${digest.slice(13, 16)}-${variant}${digest.slice(18, 20)}-${digest.slice(20, 32)}`;
}
