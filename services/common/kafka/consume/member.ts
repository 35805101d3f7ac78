import type { Consumer, Kafka } from "kafkajs";
import { sameMemberAssignor } from "./assignor.ts";
import { patchEmptyBatches } from "./empty-batch-patch.ts";
import { patchFetch } from "./fetch-patch.ts";
import type { GroupConsumerOptions } from "./group-work.ts";
import { patchHeartbeat } from "./heartbeat-patch.ts";

/**
 * How long the broker waits for records when there are none. A partition that is resumed meanwhile waits as long at worst; a question
 * about five topics' partitions ten times a second would cost an idle fetcher twice as much as all the rest.
 */
const maxWaitMs = 250;
const partitionBytes = 512 * 1024;

/**
 * kafkajs' consumer for a member of a group. A fetch brings at most 4 MiB, and 512 KiB of a partition: a record above that comes alone
 * (kafkajs shuffles what it asks for, so that every partition is first some time). `owned`: the partition numbers it has now.
 */
export function createMember(kafka: Kafka, options: GroupConsumerOptions, owned: () => Iterable<number>): Consumer {
  patchEmptyBatches();
  patchHeartbeat();
  patchFetch();
  return kafka.consumer({
    groupId: options.groupId,
    partitionAssigners: [sameMemberAssignor(owned)],
    sessionTimeout: options.timing.sessionTimeoutMs,
    rebalanceTimeout: options.timing.rebalanceTimeoutMs,
    heartbeatInterval: options.timing.heartbeatIntervalMs,
    maxWaitTimeInMs: maxWaitMs,
    minBytes: options.gathers ? partitionBytes : 1,
    maxBytes: 4 * 1024 * 1024,
    maxBytesPerPartition: partitionBytes,
    allowAutoTopicCreation: false,
    // Short, and few: a crash is told and started anew by kafkajs, a sleep without heartbeats is not.
    retry: { initialRetryTime: 100, maxRetryTime: 1_000, retries: 8 },
  });
}
