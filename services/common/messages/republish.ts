import type { TokenOutcome } from "./records.ts";

/**
 * The order, in `token.outcome`, to publish a token's stored row once more. It goes where the token's outcomes go, because only the
 * single writer of a collection knows that nothing newer is on its way. It names the token and nothing else.
 */
export function republishOrder(collectionAddress: string, tokenId: string): TokenOutcome {
  return {
    refresh_id: "",
    ordinal: 0,
    total: 0,
    project_id: 0,
    collection_address: collectionAddress,
    token_id: tokenId,
    requested_at: 0,
    created_at: 0,
    emission: 0,
    url: "",
    status_code: null,
    metadata: null,
    content_hash: null,
    error_code: null,
    error_detail: null,
    response_body: null,
    attempts: [],
    republish: true,
  };
}
