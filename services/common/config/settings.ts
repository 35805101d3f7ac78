import { z } from "zod";
import { isRange } from "../http/address-guard.ts";
import { httpUrl, integer, list } from "./config.ts";

/** Settings that several services share, by the names of their environment variables. Defaults fit the local stack. */

export const processSettings = {
  NODE_ENV: z.string().default("development"),
  LOG_LEVEL: z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"]).default("info"),
  /** How long a graceful stop may take before the process ends anyway. */
  SHUTDOWN_TIMEOUT_MS: integer(15_000, 100),
};

/** Health and metrics, on a port of their own. */
export const operationsSettings = (port: number) => ({
  OPERATIONS_HOST: z.string().default("127.0.0.1"),
  OPERATIONS_PORT: integer(port, 0, 65_535),
});

/** The HTTP interface of a service. */
export const httpSettings = (port: number) => ({
  HTTP_HOST: z.string().default("127.0.0.1"),
  HTTP_PORT: integer(port, 0, 65_535),
  /** Connections beyond this many are closed unheard. */
  HTTP_MAX_CONNECTIONS: integer(4_096, 1),
});

export const kafkaSettings = {
  KAFKA_BROKERS: list(["127.0.0.1:9092"]),
  SCHEMA_REGISTRY_URL: httpUrl("http://127.0.0.1:8081/apis/ccompat/v7"),
  /** Put before every topic name: lets several environments, or tests, share one cluster. */
  TOPIC_PREFIX: z.string().default(""),
  /** Other delays for the delay tiers, for tests: `retry-2s=100,watchdog-1h=500`. */
  TOPIC_DELAYS_MS: z.string().default(""),
};

export const consumerSettings = {
  GROUP_PREFIX: z.string().default("metadata-refresh"),
  SESSION_TIMEOUT_MS: integer(30_000, 3_000),
  REBALANCE_TIMEOUT_MS: integer(60_000, 3_000),
  HEARTBEAT_INTERVAL_MS: integer(3_000, 100),
  KAFKA_REQUEST_TIMEOUT_MS: integer(8_000, 500),
};

/** The rules between them: README, Exactness, ownership. To be reported together with every other mistake. */
export const consumerRules = [
  (settings: Readonly<Record<keyof typeof consumerSettings, unknown>>, context: z.RefinementCtx): void => {
    const [session, request] = [Number(settings.SESSION_TIMEOUT_MS), Number(settings.KAFKA_REQUEST_TIMEOUT_MS)];
    const mistake = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if (session < 3 * request) mistake("SESSION_TIMEOUT_MS", "must be at least three times KAFKA_REQUEST_TIMEOUT_MS");
    if (session < 3 * Number(settings.HEARTBEAT_INTERVAL_MS)) {
      mistake("HEARTBEAT_INTERVAL_MS", "must be at most a third of SESSION_TIMEOUT_MS");
    }
  },
  { when: () => true },
] as const;

export const cassandraSettings = {
  CASSANDRA_CONTACT_POINTS: list(["127.0.0.1:9042"]),
  CASSANDRA_DATACENTER: z.string().default("datacenter1"),
  CASSANDRA_KEYSPACE: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,47}$/, "must be lower-case letters, digits and underscores, at most 48")
    .default("metadata_refresh"),
  /**
   * The rows of a refresh expire this long after its request; tokens never do. Not below the seven days that Kafka keeps records
   * plus the 48 hours of a refresh: an outcome that is replayed after its progress had expired would count a second time.
   */
  RETENTION_SECONDS: integer(90 * 86_400, 10 * 86_400),
};

export const redisSettings = {
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: "must be a redis or rediss URL" }).default("redis://127.0.0.1:6379"),
  REDIS_KEY_PREFIX: z.string().default("metadata-refresh:"),
};

/** What the service may call beyond the public internet, and on which ports: for the fetcher, and where URLs are set. */
export const metadataApiSettings = {
  /** CIDRs that are reached although they are not public. The local stack allows loopback: `127.0.0.0/8,::1/128`. */
  METADATA_API_ALLOWED_RANGES: list([]).pipe(z.array(z.string().refine(isRange, "must be CIDRs such as 10.20.0.0/16"))),
  /** `*` for every port. */
  METADATA_API_ALLOWED_PORTS: list(["80", "443"]).pipe(z.array(z.string().refine(isPort, "must be port numbers, or *"))),
};

function isPort(text: string): boolean {
  return text === "*" || (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535);
}
