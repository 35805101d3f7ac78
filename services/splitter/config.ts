import { z } from "zod";
import { type ConfigResult, type Environment, parseConfig } from "../common/config/config.ts";
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
    ...operationsSettings(9102),
    ...kafkaSettings,
    ...consumerSettings,
    ...cassandraSettings,
  })
  .superRefine(...consumerRules);

export type SplitterConfig = z.output<typeof schema>;

export function parse(environment: Environment): ConfigResult<SplitterConfig> {
  return parseConfig(schema, environment);
}
