import type { z } from "zod";
import { refusalCodes } from "../../common/http/answer.ts";
import { integerHeader, jsonContent, jsonSchema, queryParameters, refusalSchema } from "../../common/http/openapi.ts";
import type { AdminRoute } from "./route.ts";

export const openApiRoute = "GET /openapi.json";

/** `GET /openapi.json`: made from the routes and the very schemas that check their bodies. */
export function openApi(routes: readonly AdminRoute[]): AdminRoute {
  const document = {
    openapi: "3.1.0",
    info: { title: "Asset metadata refresh: admin API", version: "1" },
    security: [{ adminToken: [] }],
    components: {
      securitySchemes: { adminToken: { type: "http", scheme: "bearer" } },
      responses: {
        Refused: {
          description: "Refused; `code` says why. 503: nothing is known of what was done, look before you try again.",
          headers: { "retry-after": integerHeader("Seconds to wait; with a 503", false) },
          content: json(refusalSchema(refusalCodes), "output"),
        },
      },
    },
    paths: pathsOf(routes),
  };
  return {
    method: "GET",
    path: "/openapi.json",
    document: { summary: "This document", answers: { 200: { description: "The document." } } },
    handle: () => ({ status: 200, body: document }),
  };
}

function pathsOf(routes: readonly AdminRoute[]): Record<string, Record<string, unknown>> {
  const byPath = Object.groupBy(routes, ({ path }) => path.replaceAll(/:([a-z_]+)/g, "{$1}"));
  return Object.fromEntries(
    Object.entries(byPath).map(([path, group = []]) => [
      path,
      Object.fromEntries(group.map((route) => [route.method.toLowerCase(), operationOf(route)])),
    ]),
  );
}

function operationOf({ path, document }: AdminRoute): Record<string, unknown> {
  const { summary, body, query = {}, answers, refusals = [] } = document;
  const ofPath = [...path.matchAll(/:([a-z_]+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const refused = [...(body === undefined ? [] : [413, 415]), 400, 401, 503, ...refusals];
  return {
    summary,
    parameters: [...ofPath, ...queryParameters(query)],
    ...(body === undefined ? {} : { requestBody: { required: true, content: json(body, "input") } }),
    responses: {
      ...Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer)])),
      ...Object.fromEntries(refused.map((status) => [status, { $ref: "#/components/responses/Refused" }])),
    },
  };
}

function responseOf({ description, schema }: { description: string; schema?: z.ZodType }) {
  return schema === undefined ? { description } : { description, content: json(schema, "output") };
}

function json(schema: z.ZodType, io: "input" | "output") {
  return jsonContent(jsonSchema(schema, io));
}
