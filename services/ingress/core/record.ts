import type { Collection } from "../../common/cassandra/registrations.ts";
import { microsFromMs } from "../../common/clock.ts";
import type { RefreshRequested } from "../../common/messages/records.ts";

/** The record of a refresh: everything the later steps need, as it is at this moment. */
export function recordOf(
  refreshId: string,
  request: { readonly collection: Collection; readonly tokenIds: readonly string[] },
  options: { nowMs: number; deadlineSeconds: number },
): RefreshRequested {
  const { collection, tokenIds } = request;
  const requestedAt = microsFromMs(options.nowMs);
  return {
    refresh_id: refreshId,
    project_id: collection.projectId,
    collection_address: collection.collectionAddress,
    token_ids: tokenIds,
    requested_at: requestedAt,
    deadline: requestedAt + options.deadlineSeconds * 1_000_000,
    metadata_api_url: collection.metadataApiUrl,
    token_policy: collection.tokenPolicy,
    max_concurrency: collection.maxConcurrency,
    max_requests_per_second: collection.maxRequestsPerSecond,
  };
}
