import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";

export type { Logger } from "pino";

/** Keys whose values never reach a log, wherever they stand in an event. */
const secretKeys = ["authorization", "x-api-key", "x-svc-eth-signature", "api_key", "password", "admin_token"];

/**
 * One JSON line per event: `event` is a constant name (`fetch.attempted`), ids are child bindings.
 * Bodies, query strings and credentials are never logged (README, Guarantees, I17).
 */
export function createLogger(service: string, level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: { service },
    messageKey: "event",
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: secretKeys.flatMap((key) => [`["${key}"]`, `*["${key}"]`]),
      censor: "[redacted]",
    },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
