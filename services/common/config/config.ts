import { z } from "zod";

/** The environment as `process.env` gives it; an empty value counts as not set. */
export type Environment = Readonly<Record<string, string | undefined>>;

export type ConfigResult<T> =
  | { readonly ok: true; readonly config: T }
  | { readonly ok: false; readonly problems: readonly string[] };

/** Parses the whole environment at once and reports every mistake together, each with the variable's name. */
export function parseConfig<S extends z.ZodType>(schema: S, environment: Environment): ConfigResult<z.output<S>> {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""));
  const parsed = schema.safeParse(given);
  if (parsed.success) return { ok: true, config: parsed.data };
  return {
    ok: false,
    problems: parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`),
  };
}

const secretName = /TOKEN|PASSWORD|SECRET|PRIVATE/;

/** The configuration for a log line: secrets are replaced, credentials in URLs removed. */
export function summarize(config: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, secretName.test(name) ? "[set]" : withoutCredentials(value)]),
  );
}

function withoutCredentials(value: unknown): unknown {
  return typeof value === "string" ? value.replace(/\/\/[^/@]*@/, "//[redacted]@") : value;
}

/** A whole number between two bounds, with a default. */
export const integer = (fallback: number, min: number, max: number = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^-?\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .default(fallback);

/** `true` or `false`. */
export const flag = (fallback: boolean) =>
  z
    .enum(["true", "false"], { error: "must be true or false" })
    .transform((text) => text === "true")
    .default(fallback);

/** Comma-separated, blanks around entries ignored. */
export const list = (fallback: readonly string[]) =>
  z
    .string()
    .transform((text) =>
      text
        .split(",")
        .map((entry) => entry.trim())
        .filter((entry) => entry !== ""),
    )
    .default([...fallback]);

export const httpUrl = (fallback: string) =>
  z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).default(fallback);
