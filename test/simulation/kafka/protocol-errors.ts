import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { createErrorFromCode } = require("kafkajs/src/protocol/error.js") as { createErrorFromCode(code: number): Error };
const kafkajsErrors = require("kafkajs/src/errors.js") as {
  KafkaJSRequestTimeoutError: new (message: string) => Error;
  KafkaJSConnectionClosedError: new (message: string, broker: { host: string; port: number }) => Error;
};

const codes: Readonly<Record<string, number>> = { ILLEGAL_GENERATION: 22, UNKNOWN_MEMBER_ID: 25, REBALANCE_IN_PROGRESS: 27 };

/** What kafkajs throws for an answer with this error. */
export function protocolError(type: string): Error {
  const code = codes[type];
  if (code === undefined) throw new Error(`the simulated broker knows no error ${type}`);
  return createErrorFromCode(code);
}

/** What kafkajs throws for a request without an answer. */
export function requestTimeout(apiName: string): Error {
  return new kafkajsErrors.KafkaJSRequestTimeoutError(`Request ${apiName} timed out`);
}

/** What kafkajs throws when the connection breaks under a request. */
export function connectionClosed(): Error {
  return new kafkajsErrors.KafkaJSConnectionClosedError("Closed connection", { host: "simulated", port: 9092 });
}
