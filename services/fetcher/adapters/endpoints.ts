import { LRUCache } from "lru-cache";
import type { AddressPolicy } from "../../common/http/address-guard.ts";
import { checkMetadataApiUrl } from "../../common/http/metadata-url.ts";
import type { Endpoint } from "../core/endpoint.ts";

const rememberedUrls = 10_000;

/**
 * Where a metadata_api_url leads, by the rules for setting one: records may have been accepted under other rules. Remembered by URL,
 * of which there are as many as collections.
 */
export function createEndpoints(policy: AddressPolicy): (metadataApiUrl: string) => Endpoint {
  const known = new LRUCache<string, Endpoint>({ max: rememberedUrls });
  return (metadataApiUrl) => {
    const remembered = known.get(metadataApiUrl);
    if (remembered !== undefined) return remembered;
    const endpoint = judge(metadataApiUrl, policy);
    known.set(metadataApiUrl, endpoint);
    return endpoint;
  };
}

function judge(metadataApiUrl: string, policy: AddressPolicy): Endpoint {
  const checked = checkMetadataApiUrl(metadataApiUrl, policy);
  if (checked.ok) return { ok: true, url: checked.url, origin: new URL(checked.url).origin };
  const { block } = checked;
  const blocked = block !== undefined || checked.rule === "port";
  return { ok: false, detail: blocked ? "blocked_address" : "invalid_url", ...(block === undefined ? {} : { block }) };
}
