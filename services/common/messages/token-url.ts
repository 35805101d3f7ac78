/**
 * The URL of one token: `{metadata_api_url}/{token_id}`. One place, because the fetcher calls it and an outcome without a call
 * shows it "as it would have been called" (README, The API, error item). The API's URL was checked when it was set: it has no
 * query and no fragment.
 */
export function tokenUrl(metadataApiUrl: string, tokenId: string): string {
  return metadataApiUrl.endsWith("/") ? `${metadataApiUrl}${tokenId}` : `${metadataApiUrl}/${tokenId}`;
}
