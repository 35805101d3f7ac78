import type { Kafka } from "kafkajs";
import type { KafkaConnection } from "../../../services/common/kafka/client.ts";
import { surroundings } from "../surroundings.ts";

/** Stands for services/common/kafka/client.ts. */
export const connectionTimeoutMs = 3_000;

export function createKafka({ requestTimeoutMs }: KafkaConnection): Kafka {
  return surroundings().kafka(requestTimeoutMs);
}
