import { z } from "zod";
import type { ApiKey, Collection, Project } from "../../common/cassandra/registrations.ts";
import { isoFromMicros } from "../../common/clock.ts";
import type { Token } from "./tokens.ts";

/** The resources of the admin API as JSON, with their schemas for the OpenAPI document. */

const time = z.string().meta({ format: "date-time", description: "ISO 8601 UTC with microseconds." });
const whole = z.int().nonnegative();
const isoOrNull = (micros: number | null): string | null => (micros === null ? null : isoFromMicros(micros));

export const projectSchema = z.object({
  project_id: whole,
  name: z.string(),
  owner_address: z.string(),
  refreshes_per_hour: whole.nullable(),
  created_at: time,
});

export function viewOfProject(project: Project): z.output<typeof projectSchema> {
  return {
    project_id: project.projectId,
    name: project.name,
    owner_address: project.ownerAddress,
    refreshes_per_hour: project.refreshesPerHour,
    created_at: isoFromMicros(project.createdAt),
  };
}

export const collectionSchema = z.object({
  collection_address: z.string(),
  project_id: whole,
  metadata_api_url: z.string(),
  token_policy: z.enum(["registered", "open"]),
  max_concurrency: whole.nullable(),
  max_requests_per_second: whole.nullable(),
  created_at: time,
});

export function viewOfCollection(collection: Collection): z.output<typeof collectionSchema> {
  return {
    collection_address: collection.collectionAddress,
    project_id: collection.projectId,
    metadata_api_url: collection.metadataApiUrl,
    token_policy: collection.tokenPolicy,
    max_concurrency: collection.maxConcurrency,
    max_requests_per_second: collection.maxRequestsPerSecond,
    created_at: isoFromMicros(collection.createdAt),
  };
}

export const apiKeySchema = z.object({
  key_id: z.string(),
  project_id: whole,
  name: z.string(),
  requests_per_second: whole,
  created_at: time,
  revoked_at: time.nullable(),
});

/** Neither the key nor its hash. */
export function viewOfApiKey(key: ApiKey): z.output<typeof apiKeySchema> {
  return {
    key_id: key.keyId,
    project_id: key.projectId,
    name: key.name,
    requests_per_second: key.requestsPerSecond,
    created_at: isoFromMicros(key.createdAt),
    revoked_at: isoOrNull(key.revokedAt),
  };
}

export const tokenSchema = z.object({
  collection_address: z.string(),
  token_id: z.string(),
  registered_at: time.nullable(),
  metadata: z.string().nullable().meta({ description: "The text that the Metadata API sent last, unchanged." }),
  content_hash: z.string().nullable(),
  version: whole.nullable(),
  refreshed_at: time.nullable(),
  refresh_id: z.string().nullable(),
});

export function viewOfToken(token: Token): z.output<typeof tokenSchema> {
  return {
    collection_address: token.collectionAddress,
    token_id: token.tokenId,
    registered_at: isoOrNull(token.registeredAt),
    metadata: token.metadata,
    content_hash: token.contentHash,
    version: token.version,
    refreshed_at: isoOrNull(token.refreshedAt),
    refresh_id: token.refreshId,
  };
}
