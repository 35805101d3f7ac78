import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { errorCodes } from "../../services/common/messages/records.ts";

const folder = new URL("../../schemas/avro/", import.meta.url);

type Schema = string | readonly Schema[] | SchemaObject;
interface SchemaObject {
  readonly type: Schema;
  readonly name?: string;
  readonly doc?: string;
  readonly items?: Schema;
  readonly fields?: readonly (SchemaObject & { readonly name: string })[];
}

const files = readdirSync(folder).map(
  (file) => [file, JSON.parse(readFileSync(new URL(file, folder), "utf8")) as SchemaObject] as const,
);

/** Every record type inside a schema, itself included. */
function recordsIn(schema: Schema): SchemaObject[] {
  if (typeof schema === "string") return [];
  if ("map" in schema) return schema.flatMap(recordsIn);
  const inside = [schema.items ?? "null", schema.type, ...(schema.fields ?? [])].flatMap(recordsIn);
  return schema.type === "record" ? [schema, ...inside] : inside;
}

describe("schemas/avro", () => {
  it.each(files)("explains every field of %s", (_file, schema) => {
    const fields = recordsIn(schema).flatMap((record) => record.fields ?? []);
    expect(fields.filter(({ doc }) => doc === undefined).map(({ name }) => name)).toEqual([]);
    expect(fields.length).toBeGreaterThan(0);
  });

  it("points at the specification for the codes of a failure, which the code lists in full", () => {
    const specification = readFileSync(new URL("../specification.md", folder), "utf8");
    expect(errorCodes.filter((code) => !specification.includes(`| ${code} |`))).toEqual([]);
  });
});
