import { z } from "zod";
import { type ConfigResult, type Environment, integer, parseConfig } from "../../services/common/config/config.ts";
import { cassandraSettings, kafkaSettings, processSettings } from "../../services/common/config/settings.ts";

const schema = z.object({
  LOG_LEVEL: processSettings.LOG_LEVEL.default("warn"),
  ...kafkaSettings,
  /** The highest replication of a topic; 0: as many as there are brokers, up to 3. */
  KAFKA_REPLICATION_FACTOR: integer(0, 0, 9),
  CASSANDRA_CONTACT_POINTS: cassandraSettings.CASSANDRA_CONTACT_POINTS,
  CASSANDRA_DATACENTER: cassandraSettings.CASSANDRA_DATACENTER,
  CASSANDRA_KEYSPACE: cassandraSettings.CASSANDRA_KEYSPACE,
  /** Replicas of a keyspace that is created; 0: as many as the data centre has nodes, up to 3. */
  CASSANDRA_REPLICATION_FACTOR: integer(0, 0, 9),
});

/** By the names of the environment variables. */
export type ProvisionSettings = z.output<typeof schema>;

export function parseProvisionSettings(environment: Environment): ConfigResult<ProvisionSettings> {
  return parseConfig(schema, environment);
}
