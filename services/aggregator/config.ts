import { z } from "zod";
import { type ConfigResult, type Environment, integer, parseConfig } from "../common/config/config.ts";
import {
  cassandraSettings,
  consumerRules,
  consumerSettings,
  kafkaSettings,
  operationsSettings,
  processSettings,
} from "../common/config/settings.ts";

const schema = z
  .object({
    ...processSettings,
    ...operationsSettings(9104),
    ...kafkaSettings,
    ...consumerSettings,
    ...cassandraSettings,
    /** Refreshes whose progress is kept in memory, about 1 KiB each. */
    PROGRESS_CACHE_COUNT: integer(20_000, 1, 1_000_000),
  })
  .superRefine(...consumerRules);

export type AggregatorConfig = z.output<typeof schema>;

export function parse(environment: Environment): ConfigResult<AggregatorConfig> {
  return parseConfig(schema, environment);
}
