import { expect, test } from "vitest";
import { AbandonedError } from "../../../../../services/common/errors.ts";
import { createDeadLetters } from "../../../../../services/common/kafka/consume/dead-letters.ts";
import type { OutgoingRecord, RawRecord, RecordProducer } from "../../../../../services/common/kafka/contracts.ts";
import { loadTopics } from "../../../../../services/common/kafka/topics.ts";
import { Metrics } from "../../../../../services/common/metrics/metrics.ts";

const topics = loadTopics({ prefix: "test." });

/** The port as its contract says, with a limit that a test can reach. */
function start({ limitBytes = 1_000_000, abandons = false } = {}) {
  const delivered: OutgoingRecord[] = [];
  const producer: RecordProducer = {
    send: async () => ({ ok: false, reason: "not_sent", message: "not used" }),
    deliver: async (records) => {
      if (abandons) throw new AbandonedError("stopped");
      return records.map((record) => {
        if (record.value.length > limitBytes) return { ok: false as const, reason: "too_large" as const, message: "too large" };
        delivered.push(record);
        return { ok: true as const, partition: 0, offset: 0, appendTimeMs: 0 };
      });
    },
    close: async () => undefined,
  };
  const metrics = new Metrics("test");
  return { delivered, metrics, deadLetters: createDeadLetters({ producer, topics, metrics, service: "splitter", groupId: "g" }) };
}

const record: RawRecord = {
  topic: topics.refreshRequested.name,
  partition: 3,
  offset: 41,
  key: Buffer.from("key"),
  value: Buffer.from("value"),
  timestampMs: 1_700_000_000_000,
  headers: { traceparent: "00-1" },
};

test("keeps bytes and headers, and says where the record comes from and why it is here", async () => {
  const { deadLetters, delivered, metrics } = start();
  await deadLetters.put(record, "rejected", "x".repeat(5_000));
  expect(delivered).toEqual([
    {
      topic: "test.internal.metadata.dead-letter.v1",
      key: "key",
      value: Buffer.from("value"),
      headers: {
        traceparent: "00-1",
        dead_letter_cause: "rejected",
        dead_letter_message: "x".repeat(1_000),
        dead_letter_topic: record.topic,
        dead_letter_partition: "3",
        dead_letter_offset: "41",
        dead_letter_timestamp_ms: "1700000000000",
        dead_letter_group: "g",
        dead_letter_service: "splitter",
      },
    },
  ]);
  const source = topics.refreshRequested.baseName;
  expect((await metrics.text()).body).toContain(`dead_letters_total{cause="rejected",source="${source}",service="test"} 1`);
});

test("keeps a key that is no text, and tells a tombstone from an empty value", async () => {
  const { deadLetters, delivered } = start();
  await deadLetters.put({ ...record, key: Buffer.from([0xff]), value: null }, "undecodable", "");
  await deadLetters.put({ ...record, key: null, value: Buffer.alloc(0) }, "undecodable", "");
  expect(delivered[0]).toMatchObject({ key: "", headers: { dead_letter_key: Buffer.from([0xff]), dead_letter_value: "null" } });
  expect(delivered[1]?.headers).not.toHaveProperty("dead_letter_key");
  expect(delivered[1]?.headers).not.toHaveProperty("dead_letter_value");
});

test("keeps where to find a record that is too large even for the dead letters", async () => {
  const { deadLetters, delivered } = start({ limitBytes: 100 });
  await deadLetters.put({ ...record, value: Buffer.alloc(101) }, "undecodable", "");
  expect(delivered).toHaveLength(1);
  expect(delivered[0]).toMatchObject({
    value: Buffer.alloc(0),
    headers: { dead_letter_value: "dropped", dead_letter_value_bytes: "101" },
  });
  expect(delivered[0]?.headers).toMatchObject({ dead_letter_offset: "41", dead_letter_cause: "undecodable" });
});

test("does not count as written what was given up", async () => {
  const { deadLetters, metrics } = start({ abandons: true });
  await expect(deadLetters.put(record, "rejected", "")).rejects.toThrow(AbandonedError);
  expect((await metrics.text()).body).not.toMatch(/dead_letters_total\{.*\} 1/);
});
