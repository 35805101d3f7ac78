/** kafkajs wraps its errors, and only the innermost has the protocol's type. */
function* causesOf(error: unknown): Generator<{ readonly type?: unknown; readonly name?: unknown }> {
  for (let cause = error; cause instanceof Error; cause = cause.cause) yield cause as Error & { type?: unknown };
}

const membershipTypes = ["REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "NOT_COORDINATOR_FOR_GROUP"];

/** The group goes on without this member until it joins again. */
export function isMembershipLost(error: unknown): boolean {
  return [...causesOf(error)].some(({ type }) => membershipTypes.includes(String(type)));
}

/** No heartbeat was answered for a whole session. By its type kafkajs takes it for a rebalance: it looks for the coordinator and joins. */
export function sessionLapsed(cause: unknown): Error {
  return Object.assign(new Error("no heartbeat was answered for a session", { cause }), { type: "REBALANCE_IN_PROGRESS" });
}

const outageNames = [
  "KafkaJSConnectionError",
  "KafkaJSConnectionClosedError",
  "KafkaJSRequestTimeoutError",
  "KafkaJSTimeout",
  "KafkaJSLockTimeout",
  "KafkaJSBrokerNotFound",
  "KafkaJSMetadataNotLoaded",
  "KafkaJSTopicMetadataNotLoaded",
  // What is left of any failure to reach a broker while the coordinator is looked for; kafkajs calls it not retriable.
  "KafkaJSGroupCoordinatorNotFound",
];

/** No broker could be reached: it passes. */
export function isOutage(error: unknown): boolean {
  return [...causesOf(error)].some(({ name }) => outageNames.includes(String(name)));
}
