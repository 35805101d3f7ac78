import { z } from "zod";
import { type ConfigResult, type Environment, parseConfig } from "../../services/common/config/config.ts";
import { cassandraSettings, consumerSettings, kafkaSettings, processSettings } from "../../services/common/config/settings.ts";

const schema = z.object({
  LOG_LEVEL: processSettings.LOG_LEVEL.default("error"),
  ...kafkaSettings,
  /** Of the services: their groups are looked at. */
  GROUP_PREFIX: consumerSettings.GROUP_PREFIX,
  KAFKA_REQUEST_TIMEOUT_MS: consumerSettings.KAFKA_REQUEST_TIMEOUT_MS,
  CASSANDRA_CONTACT_POINTS: cassandraSettings.CASSANDRA_CONTACT_POINTS,
  CASSANDRA_DATACENTER: cassandraSettings.CASSANDRA_DATACENTER,
  CASSANDRA_KEYSPACE: cassandraSettings.CASSANDRA_KEYSPACE,
});

/** By the names of the environment variables, which are those of the services. */
export type OperateSettings = z.output<typeof schema>;

export function parseOperateSettings(environment: Environment): ConfigResult<OperateSettings> {
  return parseConfig(schema, environment);
}
