import { describe, expect, it } from "vitest";
import { refusalCodes } from "../../../../services/common/http/answer.ts";
import { openApiDocument } from "../../../../services/ingress/routes/openapi.ts";

const document: unknown = JSON.parse(JSON.stringify(openApiDocument));

function* nodes(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield value as Record<string, unknown>;
  for (const child of Object.values(value)) yield* nodes(child);
}

function resolve(pointer: string): unknown {
  return pointer
    .slice(2)
    .split("/")
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
}

describe("the OpenAPI document", () => {
  it("refers to nothing that is not in it", () => {
    const references = [...nodes(document)].flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []));
    expect(references.length).toBeGreaterThan(20);
    for (const reference of references) expect(resolve(reference), reference).toBeDefined();
  });

  it("describes the four endpoints with their operations", () => {
    expect(document).toMatchObject({
      openapi: "3.1.0",
      paths: {
        "/v1/metadata-refreshes": { post: { operationId: "requestRefresh" }, get: { operationId: "listRefreshes" } },
        "/v1/metadata-refreshes/{refresh_id}": { get: { operationId: "getRefresh" } },
        "/v1/metadata-refreshes/{refresh_id}/errors": { get: { operationId: "listErrors" } },
      },
    });
  });

  it("declares every parameter of its paths", () => {
    for (const [path, item] of Object.entries(openApiDocument.paths)) {
      const names = [...path.matchAll(/\{([a-z_]+)\}/g)].map(([, name]) => name);
      for (const operation of Object.values(item)) {
        const inPath = JSON.stringify(operation).match(/"name":"([a-z_]+)","in":"path"/g) ?? [];
        expect(inPath, path).toHaveLength(names.length);
      }
    }
  });

  it("has the body's limits as they are checked", () => {
    expect(resolve("#/components/schemas/RefreshRequest")).toMatchObject({
      type: "object",
      required: ["collection_address", "token_ids"],
      additionalProperties: false,
      properties: {
        collection_address: { type: "string", pattern: "^0x[0-9a-fA-F]{40}$" },
        token_ids: { minItems: 1, maxItems: 1_000, uniqueItems: true, items: { pattern: "^(0|[1-9][0-9]{0,77})$" } },
      },
    });
  });

  it("has a closed list of codes, all of them known", () => {
    const schema = resolve("#/components/schemas/Refusal/properties/code/enum") as string[];
    expect(schema).toContain("refresh_limit_exceeded");
    expect(new Set(schema).size).toBe(schema.length);
    expect(refusalCodes).toEqual(expect.arrayContaining(schema));
  });
});
