import type { RefusalCode } from "../../common/http/answer.ts";
import type { Route } from "../../common/http/app.ts";
import { addressSchema } from "../../common/http/fields.ts";
import { integerHeader, jsonContent, jsonSchema, queryParameters, refusalSchema } from "../../common/http/openapi.ts";
import { pageParameters, pageSchema } from "../../common/http/paging.ts";
import { refreshRequestSchema } from "../core/refresh-request.ts";
import { errorItemSchema, receiptSchema, refreshItemSchema, refreshSchema } from "../core/views.ts";

/** The refusals of this interface by status; what an endpoint does not list it does not answer. */
const refusals = {
  400: { codes: ["invalid_request"], description: "The request is not as described here; `details` say where." },
  401: { codes: ["invalid_signature", "invalid_api_key"], description: "The wallet's headers or the API key do not hold." },
  403: { codes: ["not_the_owner"], description: "The collection, or the API key, belongs to a project of another owner." },
  404: { codes: ["not_found"], description: "No such collection, no such refresh, or one of another owner." },
  413: { codes: ["payload_too_large"], description: "The body is longer than 128 KiB." },
  415: { codes: ["unsupported_media_type"], description: "The body is not `application/json` in UTF-8, uncompressed." },
  422: { codes: ["idempotency_key_reused"], description: "The Idempotency-Key was used for another request." },
  429: { codes: ["rate_limit_exceeded", "refresh_limit_exceeded"], description: "Wait for Retry-After, then longer each time." },
  503: {
    codes: ["unavailable", "acceptance_unknown"],
    description:
      "`unavailable`: nothing was done, try again. `acceptance_unknown`: the refresh may exist; " +
      "a repetition is safe only under the same Idempotency-Key.",
  },
} as const satisfies Readonly<Record<number, { codes: readonly RefusalCode[]; description: string }>>;
type RefusalStatus = keyof typeof refusals;

const schemas = {
  RefreshRequest: jsonSchema(refreshRequestSchema, "input"),
  Receipt: jsonSchema(receiptSchema),
  Refresh: jsonSchema(refreshSchema),
  RefreshPage: jsonSchema(pageSchema(refreshItemSchema)),
  ErrorPage: jsonSchema(pageSchema(errorItemSchema)),
  Refusal: jsonSchema(refusalSchema([...Object.values(refusals).flatMap(({ codes }) => codes), "method_not_allowed"])),
};

/** `GET /openapi.json`: made from the schemas that check the requests and describe the answers. */
export function openApiRoute<C>(): Route<C> {
  return { method: "GET", path: "/openapi.json", handle: () => ({ status: 200, body: openApiDocument }) };
}

const walletHeaders = {
  wallet_address: ["x-svc-eth-address", "Address of the project's owner, 0x and 40 hexadecimal digits in any case."],
  wallet_signature: [
    "x-svc-eth-signature",
    "The owner's signature (EIP-191 personal_sign, 65 bytes in hexadecimal) of the text in x-svc-eth-timestamp.",
  ],
  wallet_timestamp: ["x-svc-eth-timestamp", "UNIX seconds in decimal, within five minutes of the service's clock by default."],
} as const;
const wallet = Object.fromEntries(Object.keys(walletHeaders).map((name) => [name, []]));

const limitHeaders = (required: boolean) => ({
  "x-svc-refreshes-limit": integerHeader("Refreshes allowed per hour", required),
  "x-svc-remaining-refreshes": integerHeader("Refreshes remaining in the current hour", required),
  "x-svc-refresh-limit-reset": integerHeader("UNIX timestamp at which the next hour begins", required),
});

const refreshId = { name: "refresh_id", in: "path", required: true, schema: { type: "string", format: "uuid" } };

export const openApiDocument = {
  openapi: "3.1.0",
  info: {
    title: "Asset metadata refresh",
    version: "1",
    description: "Asks the service to read the metadata of a collection's tokens again from the project's own Metadata API.",
  },
  servers: [{ url: "/" }],
  security: [wallet, { ...wallet, api_key: [] }],
  paths: {
    "/v1/metadata-refreshes": {
      post: operation("requestRefresh", "Request a refresh", {
        parameters: [
          {
            name: "Idempotency-Key",
            in: "header",
            description: "Repetitions of the request under the same key, within a day, request nothing more.",
            schema: { type: "string", pattern: "^[!-~]{1,255}$" },
          },
        ],
        requestBody: { required: true, content: json("RefreshRequest") },
        success: { 202: { description: "The refresh is requested.", headers: limitHeaders(true), content: json("Receipt") } },
        refusals: [400, 401, 403, 404, 413, 415, 422, 429, 503],
      }),
      get: operation("listRefreshes", "List refreshes, most recent first", {
        parameters: queryParameters({
          collection_address: addressSchema.describe("Only those of this collection"),
          ...pageParameters,
        }),
        success: { 200: { description: "A page of the list.", content: json("RefreshPage") } },
        refusals: [400, 401, 403, 404, 429, 503],
      }),
    },
    "/v1/metadata-refreshes/{refresh_id}": {
      get: operation("getRefresh", "Get a refresh", {
        parameters: [refreshId],
        success: { 200: { description: "The refresh.", content: json("Refresh") } },
        refusals: [400, 401, 403, 404, 429, 503],
      }),
    },
    "/v1/metadata-refreshes/{refresh_id}/errors": {
      get: operation("listErrors", "List errors of a refresh, most recent first", {
        parameters: [refreshId, ...queryParameters(pageParameters)],
        success: { 200: { description: "A page of the failed tokens.", content: json("ErrorPage") } },
        refusals: [400, 401, 403, 404, 429, 503],
      }),
    },
  },
  components: {
    schemas,
    responses: Object.fromEntries(
      Object.entries(refusals).map(([status, { codes, description }]) => [
        `Refused${status}`,
        {
          description: `${description} Codes: ${codes.join(", ")}.`,
          headers: Number(status) === 429 || Number(status) === 503 ? retryHeaders() : {},
          content: json("Refusal"),
        },
      ]),
    ),
    securitySchemes: {
      ...Object.fromEntries(
        Object.entries(walletHeaders).map(([id, [name, description]]) => [
          id,
          { type: "apiKey", in: "header", name, description },
        ]),
      ),
      api_key: { type: "apiKey", in: "header", name: "x-api-key", description: "Of a project that was granted a higher rate." },
    },
  },
};

function operation(
  operationId: string,
  summary: string,
  parts: {
    parameters: readonly object[];
    requestBody?: object;
    success: Readonly<Record<number, object>>;
    refusals: readonly RefusalStatus[];
  },
) {
  const { success, refusals: statuses, ...rest } = parts;
  const refused = statuses.map((status) => [status, { $ref: `#/components/responses/Refused${status}` }]);
  return { operationId, summary, ...rest, responses: { ...success, ...Object.fromEntries(refused) } };
}

function json(name: keyof typeof schemas) {
  return jsonContent({ $ref: `#/components/schemas/${name}` });
}

/** The limit's headers stand in the answers to a request that got as far as the limit. */
function retryHeaders() {
  return { "retry-after": integerHeader("Seconds to wait", true), ...limitHeaders(false) };
}
