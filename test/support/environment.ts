import { randomBytes } from "node:crypto";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { parseProvisionSettings, provision } from "../../deploy/provision.ts";
import { dropKeyspace } from "../../services/common/cassandra/migrate.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { loadTopics, type Topics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";

const silent = createLogger("test-environment", "silent");

/** A corner of the shared stack that nobody else uses: topics, groups, keyspace and Redis keys with names of its own. */
export interface TestEnvironment {
  /** The prefix of everything, such as `ingress-3f9a1c2b`. */
  readonly name: string;
  /** For the services' `parse`, or for their processes. Every port is 0: the kernel's choice. */
  readonly env: Readonly<Record<string, string>>;
  /** The topics by role, under this environment's names. */
  readonly topics: Topics;
  /** Deletes the topics and the keyspace. */
  close(): Promise<void>;
}

export interface EnvironmentOptions {
  readonly delays?: string;
  /** Where the servers are, as the services' environment variables: the shared stack when not said. */
  readonly servers?: Readonly<Record<string, string>>;
}

/**
 * Provisions a corner of the stack as production is provisioned. `delays` shortens delay tiers (`retry-2s=100,watchdog-1h=500`);
 * `servers` names other servers than those of the stack, as the services' environment does.
 * Session and heartbeat are short, so that a killed member is missed for 3 seconds and not for 30.
 */
export async function createEnvironment(name: string, options: EnvironmentOptions = {}): Promise<TestEnvironment> {
  const unique = `${name}-${randomBytes(4).toString("hex")}`;
  const env = {
    ...stackEnvironment(),
    ...options.servers,
    NODE_ENV: "test",
    LOG_LEVEL: "info",
    OPERATIONS_PORT: "0",
    TOPIC_PREFIX: `${unique}.`,
    TOPIC_DELAYS_MS: options.delays ?? "",
    GROUP_PREFIX: unique,
    CASSANDRA_KEYSPACE: unique.replaceAll(/[^a-z0-9]/g, "_"),
    REDIS_KEY_PREFIX: `${unique}:`,
    SESSION_TIMEOUT_MS: "6000",
    REBALANCE_TIMEOUT_MS: "8000",
    HEARTBEAT_INTERVAL_MS: "300",
    KAFKA_REQUEST_TIMEOUT_MS: "2000",
    METADATA_API_ALLOWED_RANGES: "127.0.0.0/8,::1/128",
    METADATA_API_ALLOWED_PORTS: "*",
  };
  await provisionAll(env);
  const topics = loadTopics({ prefix: env.TOPIC_PREFIX, delays: env.TOPIC_DELAYS_MS });
  return {
    name: unique,
    env,
    topics,
    close: async () => {
      await Promise.all([removeTopics(env, topics), removeKeyspace(env)]);
    },
  };
}

async function provisionAll(env: Record<string, string>): Promise<void> {
  const settings = parseProvisionSettings(env);
  if (!settings.ok) throw new Error(settings.problems.join("; "));
  const { problems } = await provision(settings.config, { logger: silent });
  if (problems.length > 0) throw new Error(`provisioning failed: ${problems.join("; ")}`);
}

/** Only the topics: subjects of the registry are small, and unregistering them is nothing that anybody does. */
async function removeTopics(env: Record<string, string>, topics: Topics): Promise<void> {
  const brokers = (env.KAFKA_BROKERS ?? "").split(",");
  const admin = createKafka({ brokers, clientId: "test-environment", requestTimeoutMs: 30_000, logger: silent }).admin();
  await admin.connect();
  try {
    await admin.deleteTopics({ topics: topics.all.map(({ name }) => name) });
  } finally {
    await admin.disconnect();
  }
}

async function removeKeyspace(env: Record<string, string>): Promise<void> {
  await dropKeyspace({
    contactPoints: (env.CASSANDRA_CONTACT_POINTS ?? "").split(","),
    datacenter: env.CASSANDRA_DATACENTER ?? "",
    keyspace: env.CASSANDRA_KEYSPACE ?? "",
    logger: silent,
  });
}
