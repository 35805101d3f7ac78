import { Kafka, type LogEntry, logLevel } from "kafkajs";
import type { Logger } from "../logging/logger.ts";
import { patchConnections } from "./connection-patch.ts";
import { patchIdleTimer } from "./idle-timer.ts";

export interface KafkaConnection {
  readonly brokers: readonly string[];
  readonly clientId: string;
  /** A request without an answer for this long has failed; what it did is unknown. */
  readonly requestTimeoutMs: number;
  readonly logger: Logger;
}

export const connectionTimeoutMs = 3_000;

/** The kafkajs client of a process; producers, consumers and admin clients of this folder are made from it. */
export function createKafka(connection: KafkaConnection): Kafka {
  patchConnections();
  patchIdleTimer();
  return new Kafka({
    brokers: [...connection.brokers],
    clientId: connection.clientId,
    requestTimeout: connection.requestTimeoutMs,
    enforceRequestTimeout: true,
    connectionTimeout: connectionTimeoutMs,
    // kafkajs connects by itself, sleeping between its tries: never for long, so that a broker that is back is seen at once.
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 5 },
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => forward(connection.logger, entry),
  });
}

/** kafkajs tells much at info (every pause and resume) and its errors are tried again by our own loops: one level down each. */
function forward(logger: Logger, { level, namespace, log }: LogEntry): void {
  const { message, timestamp: _timestamp, logger: _logger, ...details } = log;
  const fields = { namespace, kafka: message, ...pick(details) };
  if (level === logLevel.ERROR) logger.warn(fields, "kafka.client");
  else if (level === logLevel.WARN) logger.info(fields, "kafka.client");
  else logger.debug(fields, "kafka.client");
}

const keptDetails = ["groupId", "memberId", "topic", "partition", "broker", "error", "retryCount", "retryTime", "duration"];

function pick(details: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(keptDetails.filter((key) => details[key] !== undefined).map((key) => [key, String(details[key])]));
}
