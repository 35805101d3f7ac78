import { z } from "zod";
import { type ConfigResult, type Environment, parseConfig } from "../common/config/config.ts";
import {
  cassandraSettings,
  httpSettings,
  metadataApiSettings,
  operationsSettings,
  processSettings,
} from "../common/config/settings.ts";

const developmentToken = "dev-admin-token";

const settings = z.object({
  ...processSettings,
  ...operationsSettings(9105),
  ...httpSettings(8090),
  ...cassandraSettings,
  ...metadataApiSettings,
  /** Whoever has it may register and change everything. */
  ADMIN_TOKEN: z
    .string()
    .regex(/^[!-~]+$/, "must be printable ASCII without blanks: it travels in a header")
    .default(developmentToken),
});

const schema = settings.superRefine(
  ({ NODE_ENV, ADMIN_TOKEN }, context) => {
    const mistake = NODE_ENV === "production" ? mistakeOf(ADMIN_TOKEN) : undefined;
    if (mistake !== undefined) context.addIssue({ code: "custom", path: ["ADMIN_TOKEN"], message: mistake });
  },
  // Whatever else is wrong: all mistakes are reported together.
  { when: () => true },
);

/** Undefined when the token is well, or has not even become a text: that has been said. */
function mistakeOf(token: unknown): string | undefined {
  if (token === developmentToken) return "must be set in production: the default is known to everybody";
  return typeof token === "string" && token.length < 32 ? "must have at least 32 characters in production" : undefined;
}

export type RegistryConfig = z.output<typeof schema>;

export function parse(environment: Environment): ConfigResult<RegistryConfig> {
  return parseConfig(schema, environment);
}
