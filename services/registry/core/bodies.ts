import { z } from "zod";
import { addressSchema, fail, tokenIdsSchema } from "../../common/http/fields.ts";

/** Says whether the fetcher would call this URL, and how it is spelt: checkMetadataApiUrl with the operator's policy. */
export type CheckUrl = (text: string) => { ok: true; url: string } | { ok: false; rule: string; message: string };

/** One registration of tokens; more go in several requests. */
const maxTokenIds = 10_000;

const name = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^\p{Cc}]*$/u, "must not contain control characters")
  .meta({ description: "For people: shown in lists, 1 to 200 characters." });

const address = addressSchema.describe("In any case; answered in lower case.");

const whole = (max: number, description: string) => z.int().min(1).max(max).meta({ description });

const refreshesPerHour = whole(1_000_000, "Refreshes that the project may request in an hour; null: the service's default.");
const maxConcurrency = whole(10_000, "Calls to the Metadata API at a time, at most; null: no ceiling declared.");
const maxRequestsPerSecond = whole(100_000, "Calls to the Metadata API a second, at most; null: no ceiling declared.");
const requestsPerSecond = whole(100_000, "Calls to the refresh API that the key allows in a second.");
const tokenPolicy = z.enum(["registered", "open"]).meta({
  description: "registered: a token that was never registered is token_not_found; open: every token id may be refreshed.",
});

const metadataApiUrl = (check: CheckUrl) =>
  z
    .string()
    .transform((text, context) => {
      const checked = check(text);
      return checked.ok ? checked.url : fail(context, checked.rule, checked.message);
    })
    .meta({
      examples: ["https://api.example.com/tokens"],
      description: "A token's metadata is read at {metadata_api_url}/{token_id}; it must lead to a public address.",
    });

/** The bodies of the admin API, as the core takes them. A field that is not known is an error. */
export function createBodies(checkUrl: CheckUrl) {
  return {
    newProject: z
      .strictObject({ name, owner_address: address, refreshes_per_hour: refreshesPerHour.nullable().default(null) })
      .transform((body) => ({
        name: body.name,
        ownerAddress: body.owner_address,
        refreshesPerHour: body.refreshes_per_hour,
      })),
    projectChange: z
      .strictObject({ name, owner_address: address, refreshes_per_hour: refreshesPerHour.nullable() })
      .partial()
      .refine(...changesSomething)
      .transform((body) =>
        given({ name: body.name, ownerAddress: body.owner_address, refreshesPerHour: body.refreshes_per_hour }),
      ),
    newCollection: z
      .strictObject({
        collection_address: address,
        metadata_api_url: metadataApiUrl(checkUrl),
        token_policy: tokenPolicy.default("registered"),
        max_concurrency: maxConcurrency.nullable().default(null),
        max_requests_per_second: maxRequestsPerSecond.nullable().default(null),
      })
      .transform((body) => ({
        collectionAddress: body.collection_address,
        metadataApiUrl: body.metadata_api_url,
        tokenPolicy: body.token_policy,
        maxConcurrency: body.max_concurrency,
        maxRequestsPerSecond: body.max_requests_per_second,
      })),
    collectionChange: z
      .strictObject({
        metadata_api_url: metadataApiUrl(checkUrl),
        token_policy: tokenPolicy,
        max_concurrency: maxConcurrency.nullable(),
        max_requests_per_second: maxRequestsPerSecond.nullable(),
      })
      .partial()
      .refine(...changesSomething)
      .transform((body) =>
        given({
          metadataApiUrl: body.metadata_api_url,
          tokenPolicy: body.token_policy,
          maxConcurrency: body.max_concurrency,
          maxRequestsPerSecond: body.max_requests_per_second,
        }),
      ),
    tokens: z
      .strictObject({ token_ids: tokenIdsSchema(maxTokenIds).describe("Unsigned 256-bit integers in decimal.") })
      .transform((body) => ({ tokenIds: body.token_ids })),
    newApiKey: z
      .strictObject({ name, requests_per_second: requestsPerSecond })
      .transform((body) => ({ name: body.name, requestsPerSecond: body.requests_per_second })),
    apiKeyChange: z
      .strictObject({ name, requests_per_second: requestsPerSecond })
      .partial()
      .refine(...changesSomething)
      .transform((body) => given({ name: body.name, requestsPerSecond: body.requests_per_second })),
  };
}
export type Bodies = ReturnType<typeof createBodies>;

const changesSomething = [
  (change: object) => Object.keys(change).length > 0,
  {
    error: "must change something",
    params: { rule: "empty_change" },
    // Only unknown fields in it: that has been said.
    when: ({ issues }: z.core.ParsePayload) => issues.length === 0,
  },
] as const;

/** What the body did not mention is not mentioned. */
function given<T extends object>(change: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(change).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
