import type { PartAnswer } from "./call.ts";

/** What a call did to the records it carried for one partition. */
export type PartOutcome =
  | { readonly kind: "acknowledged"; readonly baseOffset: number; readonly appendTimeMs: number }
  /** The whole batch was refused for its size. */
  | { readonly kind: "too_large"; readonly message: string }
  /** Taken back before it was written, through no fault of Kafka's. */
  | { readonly kind: "recalled" }
  | { readonly kind: "not_sent"; readonly message: string }
  | { readonly kind: "unknown"; readonly message: string };

const tooLarge: Readonly<Record<number, string>> = { 10: "MESSAGE_TOO_LARGE", 18: "RECORD_LIST_TOO_LARGE" };

/**
 * Errors that a broker gives before it appends (ReplicaManager.appendRecords). Some of them can also end the wait for the
 * replicas, after the append: then the answer names the offset. Every other error, REQUEST_TIMED_OUT,
 * NOT_ENOUGH_REPLICAS_AFTER_APPEND and KAFKA_STORAGE_ERROR among them, leaves open what is in the log.
 */
const refusals: Readonly<Record<number, string>> = {
  2: "CORRUPT_MESSAGE",
  3: "UNKNOWN_TOPIC_OR_PARTITION",
  5: "LEADER_NOT_AVAILABLE",
  6: "NOT_LEADER_OR_FOLLOWER",
  17: "INVALID_TOPIC_EXCEPTION",
  19: "NOT_ENOUGH_REPLICAS",
  21: "INVALID_REQUIRED_ACKS",
  29: "TOPIC_AUTHORIZATION_FAILED",
  31: "CLUSTER_AUTHORIZATION_FAILED",
  32: "INVALID_TIMESTAMP",
  35: "UNSUPPORTED_VERSION",
  42: "INVALID_REQUEST",
  43: "UNSUPPORTED_FOR_MESSAGE_FORMAT",
  44: "POLICY_VIOLATION",
  76: "UNSUPPORTED_COMPRESSION_TYPE",
  87: "INVALID_RECORD",
};
const nothingAppended = -1;

/** `error` is what kafkajs threw for the call, as text: the reason where the broker gave none. */
export function outcomeOf(answer: PartAnswer, error: string): PartOutcome {
  if (answer.state === "kept") return answer.recalled ? { kind: "recalled" } : { kind: "not_sent", message: error };
  if (answer.state === "unanswered") return { kind: "unknown", message: error };
  const { errorCode, baseOffset, appendTimeMs } = answer;
  if (errorCode === 0) return { kind: "acknowledged", baseOffset, appendTimeMs };
  const size = tooLarge[errorCode];
  if (size !== undefined) return { kind: "too_large", message: `the broker answered ${size}` };
  const refusal = refusals[errorCode];
  if (refusal !== undefined && baseOffset === nothingAppended) {
    return { kind: "not_sent", message: `the broker answered ${refusal}` };
  }
  return { kind: "unknown", message: `the broker answered ${refusal ?? `error ${errorCode}`}` };
}
