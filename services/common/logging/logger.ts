import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import { clean, withoutSecrets } from "./clean.ts";

export type { Logger } from "pino";

/**
 * One JSON line per event: `event` is a constant name (`fetch.attempted`), ids are child bindings, which pino cleans by form alone.
 * Bodies, query strings and credentials are never logged (README, Guarantees, I17). What slips into a message of somebody else's,
 * a driver's error for one, is taken out here.
 */
export function createLogger(service: string, level: string, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: { service },
    messageKey: "event",
    timestamp: stdTimeFunctions.isoTime,
    formatters: {
      level: (label: string) => ({ level: label }),
      log: (fields: object) => clean(fields) as Record<string, unknown>,
    },
    // Errors are fields by then; pino's own serializer would take them for errors once more.
    serializers: { err: (fields: unknown) => fields },
    hooks: { streamWrite: withoutSecrets },
  };
  return destination === undefined ? pino(options) : pino(options, destination);
}
