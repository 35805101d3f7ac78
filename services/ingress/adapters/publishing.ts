import { setTimeout as delay } from "node:timers/promises";
import { writeRefreshRows } from "../../common/cassandra/refresh-rows.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import type { Clock } from "../../common/clock.ts";
import { messageOf } from "../../common/errors.ts";
import type { Codec, RecordProducer } from "../../common/kafka/contracts.ts";
import type { TopicDefinition } from "../../common/kafka/topics.ts";
import type { Logger } from "../../common/logging/logger.ts";
import type { RefreshRequested } from "../../common/messages/records.ts";
import type { Metrics } from "../../common/metrics/metrics.ts";
import type { AcceptancePorts } from "../core/acceptance.ts";

/** The owner waits no longer than this for rows that the splitter will write anyway. */
const rowsWaitMs = 2_000;

/** `refresh.requested`, one try within the time that somebody waits for. */
export function createPublish(
  producer: RecordProducer,
  options: { topic: TopicDefinition; timeoutMs: number; logger: Logger; metrics: Metrics },
): AcceptancePorts["publish"] {
  const { topic, timeoutMs, logger } = options;
  const published = options.metrics.counter("refreshes_published_total", "Tries to publish a refresh, by their end.", {
    result: ["acknowledged", "not_sent", "unknown", "too_large"],
  });
  return async ({ record, bytes }) => {
    const sent = await producer.send({ topic: topic.name, key: record.refresh_id, value: bytes }, timeoutMs);
    published.inc({ result: sent.ok ? "acknowledged" : sent.reason });
    const ids = { refreshId: record.refresh_id, projectId: record.project_id };
    if (!sent.ok) logger.warn({ ...ids, reason: sent.reason, kafka: sent.message }, "refresh.not_published");
    return sent;
  };
}

/** The record in bytes that were published, or were meant to be. Rejects when it cannot be read. */
export function createDecode(codec: Codec, topic: TopicDefinition): (bytes: Buffer) => Promise<RefreshRequested> {
  return async (bytes) => {
    const decoded = await codec.decode<RefreshRequested>(topic.name, bytes);
    if (decoded.ok) return decoded.value;
    throw new Error(`a remembered record cannot be read: ${decoded.message}`);
  };
}

/** The rows of a refresh whose record is in Kafka already: their failure delays its being seen, not the refresh. */
export function createWriteRows(
  cassandra: Cassandra,
  options: { clock: Clock; logger: Logger; retentionSeconds: number },
): AcceptancePorts["writeRows"] {
  const { clock, logger, retentionSeconds } = options;
  return async (record) => {
    const written = writeRefreshRows(cassandra, record, { retentionSeconds, nowMs: clock.nowMs() }).then(
      () => undefined,
      messageOf,
    );
    const late = delay(rowsWaitMs, `not within ${rowsWaitMs} ms`, { ref: false });
    const reason = await Promise.race([written, late]);
    if (reason !== undefined) logger.warn({ refreshId: record.refresh_id, reason }, "refresh.rows_left_to_splitter");
  };
}
