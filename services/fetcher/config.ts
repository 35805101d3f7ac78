import { z } from "zod";
import { type ConfigResult, type Environment, integer, list, parseConfig } from "../common/config/config.ts";
import {
  consumerRules,
  consumerSettings,
  kafkaSettings,
  metadataApiSettings,
  operationsSettings,
  processSettings,
} from "../common/config/settings.ts";

const schema = z
  .object({
    ...processSettings,
    ...operationsSettings(9103),
    ...kafkaSettings,
    ...consumerSettings,
    ...metadataApiSettings,
    /** Over name, connection, headers and body together: specification section 8, never more than 3 s. */
    METADATA_API_TIMEOUT_MS: integer(3_000, 50, 3_000),
    /** Calls for one token, the first one included: specification section 8, never more than 3. */
    MAX_ATTEMPTS: integer(3, 1, 3),
    BODY_CAP_BYTES: integer(262_144, 1_024, 1_048_576),
    /** Name servers that are asked instead of the system's, as `10.0.0.2` or `10.0.0.2:5353`. */
    METADATA_API_DNS_SERVERS: list([]).pipe(
      z.array(
        z.string().regex(/^(\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.]+\])(:\d{1,5})?$/i, "must be addresses, with or without a port"),
      ),
    ),
    /** The most calls under way to one origin for one project that may be learned; an owner may declare fewer. */
    FETCH_CONCURRENCY_PER_HOST: integer(256, 1, 1_024),
    /** Calls under way in this process. */
    FETCH_CONCURRENCY: integer(512, 1, 8_192),
    /** Records that are taken over and not finished, and bytes of them; the same bytes again for bodies on their way through. */
    WINDOW_RECORDS: integer(20_000, 100, 1_000_000),
    WINDOW_BYTES: integer(64 * 1_048_576, 1_048_576),
  })
  .superRefine(...consumerRules);

export type FetcherConfig = z.output<typeof schema>;

export function parse(environment: Environment): ConfigResult<FetcherConfig> {
  return parseConfig(schema, environment);
}
