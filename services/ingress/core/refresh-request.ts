import { z } from "zod";
import type { Problem, Refusal } from "../../common/http/answer.ts";
import { addressSchema, tokenIdsSchema } from "../../common/http/fields.ts";
import { parseFields, refuseFields } from "../../common/http/problems.ts";

/** Tokens of one refresh: specification section 8. */
const maxTokens = 1_000;
/** Of the body: 1000 ids of 78 digits are 82 kB; room for spaces and line ends. */
export const maxBodyBytes = 128 * 1024;

/** The body of a refresh request: specification section 2.5. */
export const refreshRequestSchema = z.strictObject({
  collection_address: addressSchema.describe("Address of the collection, in any case"),
  token_ids: tokenIdsSchema(maxTokens)
    .describe("Tokens to refresh, each once; unsigned 256-bit integers in decimal")
    .meta({ uniqueItems: true }),
});

export interface RefreshRequest {
  /** Lower-case. */
  readonly collectionAddress: string;
  readonly tokenIds: readonly string[];
}

export type ParsedRequest =
  | { readonly ok: true; readonly request: RefreshRequest }
  | { readonly ok: false; readonly refusal: Refusal };

/** Checks the body of a refresh request; a refusal names fields, rules and places, and repeats nothing unchecked. */
export function parseRefreshRequest(body: unknown): ParsedRequest {
  const parsed = parseFields(refreshRequestSchema, body);
  if (!parsed.ok) return { ok: false, refusal: refuseFields(parsed.problems) };
  const { collection_address: collectionAddress, token_ids: tokenIds } = parsed.value;
  const repeated = duplicates(tokenIds);
  return repeated.length === 0
    ? { ok: true, request: { collectionAddress, tokenIds } }
    : { ok: false, refusal: refuseFields(repeated) };
}

/** The ids passed their check, so they may be named: they are digits. */
function duplicates(tokenIds: readonly string[]): Problem[] {
  if (new Set(tokenIds).size === tokenIds.length) return [];
  const first = new Map<string, number>();
  return tokenIds.flatMap((tokenId, index) => {
    const earlier = first.get(tokenId);
    if (earlier === undefined) first.set(tokenId, index);
    if (earlier === undefined) return [];
    return [{ field: `token_ids[${index}]`, rule: "duplicate", message: `is the same as token_ids[${earlier}]: ${tokenId}` }];
  });
}
