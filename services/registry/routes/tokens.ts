import { z } from "zod";
import type { Collection } from "../../common/cassandra/registrations.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import type { Bodies } from "../core/bodies.ts";
import type { Token } from "../core/tokens.ts";
import { tokenSchema, viewOfToken } from "../core/views.ts";
import { readBody, readCollectionAddress, readTokenId, unknown } from "./requests.ts";
import type { AdminRoute, Audit } from "./route.ts";

export interface TokenRoutesOptions {
  readonly readCollection: (collectionAddress: string) => Promise<Collection | undefined>;
  /** Resolves with the number of different tokens. */
  readonly register: (
    collectionAddress: string,
    registration: { readonly tokenIds: readonly string[]; readonly registeredAt: number },
  ) => Promise<number>;
  readonly read: (collectionAddress: string, tokenId: string) => Promise<Token | undefined>;
  readonly bodies: Bodies;
  readonly audit: Audit;
  readonly nowMicros: () => number;
}

/** 10,000 ids of 78 digits with quotes and commas are 810 KB. */
const tokensBodyBytes = 1024 * 1024;

const registeredSchema = z.object({
  registered: z
    .int()
    .nonnegative()
    .meta({ description: "How many different tokens the request named; all of them are registered now." }),
});

export function tokenRoutes(options: TokenRoutesOptions): AdminRoute[] {
  return [
    {
      method: "POST",
      path: "/v1/collections/:collection_address/tokens",
      document: {
        summary: "Register tokens of a collection, up to 10,000 at a time; may be repeated",
        body: options.bodies.tokens,
        answers: { 200: { description: "Registered, all of them.", schema: registeredSchema } },
        refusals: [404],
      },
      handle: (request) => register(options, request),
    },
    {
      method: "GET",
      path: "/v1/collections/:collection_address/tokens/:token_id",
      document: {
        summary: "Get a token: when it was registered, and its metadata as last refreshed",
        answers: { 200: { description: "The token.", schema: tokenSchema } },
        refusals: [404],
      },
      handle: (request) => get(options, request),
    },
  ];
}

async function register(options: TokenRoutesOptions, request: Incoming) {
  const address = readCollectionAddress(request);
  if (!address.ok) return address.refusal;
  const body = await readBody(request, options.bodies.tokens, tokensBodyBytes);
  if (!body.ok) return body.refusal;
  if ((await options.readCollection(address.value)) === undefined) return unknown("collection");
  const registration = { tokenIds: body.value.tokenIds, registeredAt: options.nowMicros() };
  const registered = await options.register(address.value, registration);
  options.audit("registry.tokens_registered", { requestId: request.id, collection: address.value, registered });
  return { status: 200, body: { registered } };
}

async function get({ read }: TokenRoutesOptions, request: Incoming) {
  const address = readCollectionAddress(request);
  if (!address.ok) return address.refusal;
  const tokenId = readTokenId(request);
  if (!tokenId.ok) return tokenId.refusal;
  const token = await read(address.value, tokenId.value);
  return token === undefined ? unknown("token") : { status: 200, body: viewOfToken(token) };
}
