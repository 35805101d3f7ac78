import { z } from "zod";
import type { RefusalCode } from "./answer.ts";

/** The body of every error; `codes` are those that the described interface answers. */
export function refusalSchema<C extends RefusalCode>(codes: readonly C[]) {
  return z.strictObject({
    code: z.enum(codes),
    message: z.string(),
    details: z
      .array(z.strictObject({ field: z.string().describe("`token_ids[3]`"), rule: z.string(), message: z.string() }))
      .optional(),
  });
}

/** A schema as the documents hold it. They have one dialect, the default of OpenAPI 3.1: JSON Schema 2020-12. */
export function jsonSchema(schema: z.ZodType, io: "input" | "output" = "output"): Record<string, unknown> {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io });
  return rest;
}

export function jsonContent(schema: Readonly<Record<string, unknown>>) {
  return { "application/json": { schema } };
}

export function integerHeader(description: string, required: boolean) {
  return { description, required, schema: { type: "integer" } };
}

export function queryParameters(parameters: Readonly<Record<string, z.ZodType>>) {
  return Object.entries(parameters).map(([name, schema]) => {
    const { description, ...rest } = jsonSchema(schema, "input");
    return { name, in: "query", ...(description === undefined ? {} : { description }), schema: rest };
  });
}
