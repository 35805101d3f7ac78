import assert from "node:assert/strict";
import type { Codec, DecodeResult } from "../../../services/common/kafka/contracts.ts";
import type { Topics } from "../../../services/common/kafka/topics.ts";
import type { RefreshCompleted } from "../../../services/common/messages/records.ts";
import { outcomeRecord } from "../../unit/aggregator/outcomes.ts";
import type { Contract } from "./contract.ts";

export interface CodecStage {
  /** Made for every topic with a schema. */
  readonly codec: Codec;
  readonly topics: Topics;
}

const completion: RefreshCompleted = {
  refresh_id: "00000000-0000-4000-8000-000000000001",
  project_id: 7,
  collection_address: "0x1111111111111111111111111111111111111111",
  requested_at: 1_790_000_000_000_001,
  completed_at: 1_790_000_001_000_002,
  total: 3,
  succeeded: 2,
  unchanged: 1,
  failed: 1,
  failed_by_code: { token_not_found: 1 },
};

export const codecContract: readonly Contract<CodecStage>[] = [
  {
    name: "a value comes back as it was",
    async holds({ codec, topics }) {
      const { name } = topics.refreshCompleted;
      const decoded = await codec.decode<RefreshCompleted>(name, codec.encode(name, completion));
      assert.deepEqual(plain(decoded), { ok: true, value: completion });
      const { value } = outcomeRecord(3);
      const outcome = await codec.decode<typeof value>(topics.tokenOutcome.name, codec.encode(topics.tokenOutcome.name, value));
      assert.ok(outcome.ok);
      assert.equal(outcome.value.metadata, value.metadata);
      assert.equal(outcome.value.created_at, value.created_at);
    },
  },
  {
    name: "what is no value of the topic is undecodable",
    async holds({ codec, topics }) {
      const { name } = topics.refreshCompleted;
      const whole = codec.encode(name, completion);
      const wrong = [
        null,
        Buffer.alloc(0),
        Buffer.from("text"),
        whole.subarray(0, 5),
        whole.subarray(0, -1),
        Buffer.concat([whole, Buffer.from([0])]),
      ];
      for (const value of wrong) {
        const decoded = await codec.decode(name, value);
        assert.equal(decoded.ok ? "decoded" : decoded.cause, "undecodable", value?.toString("hex"));
      }
    },
  },
  {
    name: "what is not of the schema is not encoded",
    async holds({ codec, topics }) {
      assert.throws(() => codec.encode(topics.refreshCompleted.name, { ...completion, total: "three" }));
    },
  },
];

/** Avro makes objects with classes of their own. */
function plain(decoded: DecodeResult<RefreshCompleted>): unknown {
  return JSON.parse(JSON.stringify(decoded));
}
