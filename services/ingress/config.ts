import { z } from "zod";
import { type ConfigResult, type Environment, integer, parseConfig } from "../common/config/config.ts";
import {
  cassandraSettings,
  httpSettings,
  kafkaSettings,
  operationsSettings,
  processSettings,
  redisSettings,
} from "../common/config/settings.ts";
import { usualLoad } from "../common/http/load.ts";
import { maxBodyBytes } from "./core/refresh-request.ts";

const settings = z.object({
  ...processSettings,
  ...operationsSettings(9101),
  ...httpSettings(8080),
  ...kafkaSettings,
  ...cassandraSettings,
  ...redisSettings,
  /** Connections of one address beyond this many are closed unheard; without meaning behind trusted proxies, whose addresses they have. */
  HTTP_MAX_CONNECTIONS_PER_ADDRESS: integer(256, 1),
  /** Requests that are worked on at once; beyond it the answer is 503. */
  HTTP_MAX_REQUESTS_UNDER_WAY: integer(usualLoad.requests, 1),
  /** Bodies that are held at once, in bytes; beyond it the answer is 503. */
  HTTP_MAX_BODY_BYTES_HELD: integer(usualLoad.bodyBytes, maxBodyBytes),
  /** Proxies in front that each append to X-Forwarded-For; 0: the header means nothing. */
  TRUSTED_PROXY_COUNT: integer(0, 0, 10),
  /** How far a signed timestamp may be from our clock, either way. */
  SIGNATURE_TOLERANCE_SECONDS: integer(300, 1, 86_400),
  /** Refreshes of a project in a calendar hour, where the project has no number of its own. */
  REFRESHES_PER_HOUR: integer(20, 1, 1_000_000),
  /** Calls of one IP address without an API key, over all endpoints. */
  REQUESTS_PER_SECOND_PER_IP: integer(5, 1, 100_000),
  /** After it the tokens of a refresh that are still pending are closed as failed. */
  REFRESH_DEADLINE_SECONDS: integer(48 * 3_600, 60, 6 * 86_400),
  /** How long an Idempotency-Key is remembered. */
  IDEMPOTENCY_TTL_SECONDS: integer(24 * 3_600, 60, 7 * 86_400),
  /** How long an acceptance waits for Kafka. */
  PUBLISH_TIMEOUT_MS: integer(4_000, 100, 60_000),
});

/** A request that is repeated under its key publishes the first one's record again: its deadline must not be over by then. */
const schema = settings.refine((config) => config.IDEMPOTENCY_TTL_SECONDS <= config.REFRESH_DEADLINE_SECONDS, {
  path: ["IDEMPOTENCY_TTL_SECONDS"],
  error: "must be at most REFRESH_DEADLINE_SECONDS",
});

export type IngressConfig = z.output<typeof schema>;

export function parse(environment: Environment): ConfigResult<IngressConfig> {
  return parseConfig(schema, environment);
}
