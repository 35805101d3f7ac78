import assert from "node:assert/strict";
import type { Consumer, EachBatchPayload, Kafka } from "kafkajs";
import { sameMemberAssignor } from "../../../services/common/kafka/consume/assignor.ts";
import { lookUpOffsets } from "../../../services/common/kafka/consume/offsets.ts";
import type { RecordProducer, SendResult, TopicPartition } from "../../../services/common/kafka/contracts.ts";
import { partitionOf } from "../../../services/common/kafka/partitioning.ts";
import type { TopicDefinition, Topics } from "../../../services/common/kafka/topics.ts";
import { type Contract, until, type Waiting } from "./contract.ts";

export interface LogStage extends Waiting {
  readonly kafka: Kafka;
  readonly topics: Topics;
  /** Of services/common/kafka/produce/producer.ts, on `kafka`. */
  readonly producer: RecordProducer;
  /** A group that nobody has used. */
  newGroup(): string;
}

type Acknowledged = Extract<SendResult, { ok: true }>;

async function deliver(
  { producer }: LogStage,
  topic: TopicDefinition,
  records: readonly { key: string; text: string }[],
): Promise<Acknowledged[]> {
  const results = await producer.deliver(
    records.map(({ key, text }) => ({
      topic: topic.name,
      key,
      value: Buffer.from(text),
      headers: { source: "contract", bytes: Buffer.from([0, 255]) },
    })),
  );
  return results.map((result) => {
    assert.ok(result.ok);
    return result;
  });
}

interface Member {
  readonly consumer: Consumer;
  readonly batches: EachBatchPayload[];
  /** Partition numbers of the last assignment; undefined before the first. */
  assigned(): readonly number[] | undefined;
}

/** A member that reads a topic and resolves what it has read, but commits nothing by itself. */
async function join({ kafka }: LogStage, topic: TopicDefinition, groupId: string): Promise<Member> {
  let assigned: readonly number[] | undefined;
  const consumer = kafka.consumer({
    groupId,
    partitionAssigners: [sameMemberAssignor(() => assigned ?? [])],
    sessionTimeout: 6_000,
    rebalanceTimeout: 8_000,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 100,
    retry: { initialRetryTime: 100, retries: 8 },
  });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    assigned = payload.memberAssignment[topic.name] ?? [];
  });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic.name], fromBeginning: true });
  const batches: EachBatchPayload[] = [];
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: true,
    eachBatch: async (payload) => void batches.push(payload),
  });
  return { consumer, batches, assigned: () => assigned };
}

const messagesOf = ({ batches }: Member) => batches.flatMap(({ batch }) => batch.messages.map((message) => ({ batch, message })));

const offsetsOf = async ({ kafka }: LogStage, groupId: string, partition: TopicPartition) =>
  (await lookUpOffsets(kafka, groupId, [partition])).get(partition);

/** What the services rely on of Kafka. Each works with records of a topic that no other of them uses. */
export const logContract: readonly Contract<LogStage>[] = [
  {
    name: "a partition numbers its records one after the other, in the order of their delivery",
    async holds(stage) {
      const topic = stage.topics.deadLetter;
      const texts = ["a", "b", "c", "d"].map((text) => ({ key: "one key", text }));
      const results = await deliver(stage, topic, texts);
      const first = results[0]?.offset ?? 0;
      assert.deepEqual(
        results.map(({ offset }) => offset - first),
        [0, 1, 2, 3],
      );
      const partition = partitionOf("one key", topic.partitions);
      assert.ok(results.every((result) => result.partition === partition));
      const [later] = await deliver(stage, topic, [{ key: "one key", text: "e" }]);
      assert.equal(later?.offset, first + 4);
      assert.ok(Number.isInteger(later?.appendTimeMs) && (later?.appendTimeMs ?? 0) >= (results[3]?.appendTimeMs ?? 0));
      const offsets = await offsetsOf(stage, stage.newGroup(), { topic: topic.name, partition });
      assert.deepEqual(offsets, { committed: undefined, beginning: 0, end: first + 5 });
    },
  },
  {
    name: "records come back as they were, from the beginning where nothing is committed",
    async holds(stage) {
      const topic = stage.topics.tokenState;
      const results = await deliver(stage, topic, [
        { key: "größe", text: "first" },
        { key: "größe", text: "second" },
      ]);
      const member = await join(stage, topic, stage.newGroup());
      const read = await until(
        stage,
        "both records",
        () => messagesOf(member),
        (messages) => messages.length >= 2,
      );
      assert.deepEqual(
        read.map(({ message }) => [message.key?.toString(), message.value?.toString(), Number(message.offset)]),
        [
          ["größe", "first", results[0]?.offset],
          ["größe", "second", results[1]?.offset],
        ],
      );
      const [{ message, batch } = {}] = read;
      assert.equal(message?.headers?.source?.toString(), "contract");
      assert.deepEqual(Buffer.from(message?.headers?.bytes as Buffer), Buffer.from([0, 255]));
      assert.equal(Number(message?.timestamp), results[0]?.appendTimeMs);
      assert.equal(Number(batch?.highWatermark), (results[1]?.offset ?? 0) + 1);
      await member.consumer.disconnect();
    },
  },
  {
    name: "a group reads on where it has committed, whoever its member is",
    async holds(stage) {
      const topic = stage.topics.refreshCompleted;
      const groupId = stage.newGroup();
      const results = await deliver(
        stage,
        topic,
        [1, 2, 3].map((number) => ({ key: "k", text: `${number}` })),
      );
      const first = await join(stage, topic, groupId);
      await until(
        stage,
        "all records",
        () => messagesOf(first).length,
        (count) => count === 3,
      );
      const partition = partitionOf("k", topic.partitions);
      const next = (results[1]?.offset ?? 0) + 1;
      await first.consumer.commitOffsets([{ topic: topic.name, partition, offset: String(next) }]);
      assert.equal((await offsetsOf(stage, groupId, { topic: topic.name, partition }))?.committed, next);
      await first.consumer.disconnect();
      const second = await join(stage, topic, groupId);
      const read = await until(
        stage,
        "the record behind",
        () => messagesOf(second),
        (messages) => messages.length > 0,
      );
      assert.deepEqual(
        read.map(({ message }) => message.value?.toString()),
        ["3"],
      );
      await second.consumer.disconnect();
    },
  },
  {
    name: "members share the partitions, and who stays gets those of who leaves",
    async holds(stage) {
      const topic = stage.topics.watchdog;
      const groupId = stage.newGroup();
      const all = Array.from({ length: topic.partitions }, (_, partition) => partition);
      const first = await join(stage, topic, groupId);
      await until(stage, "everything for one", first.assigned, (assigned) => assigned?.length === all.length);
      const second = await join(stage, topic, groupId);
      const share = (): number[] => [...(first.assigned() ?? []), ...(second.assigned() ?? [])].sort((a, b) => a - b);
      await until(stage, "a part for each", share, (both) => String(both) === String(all) && second.assigned()?.length !== 0);
      await second.consumer.disconnect();
      await until(stage, "everything for one again", first.assigned, (assigned) => assigned?.length === all.length);
      await first.consumer.disconnect();
    },
  },
  {
    name: "who is out of its group commits nothing",
    async holds(stage) {
      const topic = stage.topics.refreshRequested;
      const groupId = stage.newGroup();
      await deliver(stage, topic, [{ key: "k", text: "1" }]);
      const member = await join(stage, topic, groupId);
      const batches = await until(
        stage,
        "a batch",
        () => member.batches,
        ({ length }) => length > 0,
      );
      await member.consumer.disconnect();
      const partition = partitionOf("k", topic.partitions);
      const commit = batches[0]?.commitOffsetsIfNecessary({
        topics: [{ topic: topic.name, partitions: [{ partition, offset: "1" }] }],
      });
      await assert.rejects(async () => commit);
      assert.equal((await offsetsOf(stage, groupId, { topic: topic.name, partition }))?.committed, undefined);
    },
  },
];
