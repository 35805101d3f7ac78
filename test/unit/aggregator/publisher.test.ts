import { describe, expect, it } from "vitest";
import { createPublisher } from "../../../services/aggregator/adapters/publisher.ts";
import { PoisonRecordError } from "../../../services/common/errors.ts";
import type { Codec, OutgoingRecord, RecordProducer } from "../../../services/common/kafka/contracts.ts";
import { loadTopics } from "../../../services/common/kafka/topics.ts";
import type { TokenState } from "../../../services/common/messages/records.ts";
import { collection, hashOf, refreshId, startOfTime } from "./outcomes.ts";

const topics = loadTopics({ prefix: "test." });
const lease = { signal: new AbortController().signal, mayAct: () => true };
const codec: Codec = {
  encode: (_topic, value) => Buffer.from(JSON.stringify(value)),
  decode: () => ({ ok: false, cause: "undecodable", message: "not here" }),
};
const state: TokenState = {
  collection_address: collection,
  token_id: "1",
  version: 2 ** 40 + 5,
  content_hash: hashOf("A"),
  metadata: "A",
  refresh_id: refreshId(1),
  refreshed_at: startOfTime + 1,
};

function setUp(answer: Awaited<ReturnType<RecordProducer["deliver"]>>[number]) {
  const sent: OutgoingRecord[] = [];
  const producer: RecordProducer = {
    send: () => Promise.reject(new Error("not used")),
    deliver: async (records) => {
      sent.push(...records);
      return records.map(() => answer);
    },
    close: async () => {},
  };
  return { sent, publisher: createPublisher({ codec, topics, states: producer, completions: producer }) };
}

const acknowledged = { ok: true, partition: 0, offset: 0, appendTimeMs: 0 } as const;

describe("public records", () => {
  it("are CloudEvents whose id and time come from their content, so that a repetition is the same event", async () => {
    const { publisher, sent } = setUp(acknowledged);
    await publisher.publishStates([state, state, { ...state, version: state.version + 1 }], lease);
    const [first, again, newer] = sent;
    expect(first).toMatchObject({ topic: "test.public.metadata.token.state.v1", key: `${collection}:1` });
    expect(first?.headers).toEqual({
      ce_specversion: "1.0",
      ce_id: "e1574f62-adc5-5f42-9e54-ad55dc6b4715",
      ce_source: "/asset-metadata-refresh",
      ce_type: "metadata.token.state.v1",
      ce_time: "2026-01-01T00:00:00.000001Z",
      "content-type": "application/avro",
    });
    expect(again).toEqual(first);
    expect(newer?.headers?.ce_id).not.toBe(first?.headers?.ce_id);
  });

  it("that no broker will ever take are poison, not an endless try", async () => {
    const { publisher } = setUp({ ok: false, reason: "too_large", message: "above max.message.bytes" });
    await expect(publisher.publishStates([state], lease)).rejects.toBeInstanceOf(PoisonRecordError);
  });
});
