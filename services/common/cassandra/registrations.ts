import type { TokenPolicy } from "../messages/records.ts";
import { concurrently } from "./parallel.ts";
import type { Cassandra, Row } from "./session.ts";

/**
 * What the registry has written, as every service reads it. In these rows 0 stands for "not set", as no value does: a setting
 * that is taken back is written as 0, because deleting a cell would write a tombstone.
 */

export interface Project {
  readonly projectId: number;
  readonly name: string;
  /** Lower case. */
  readonly ownerAddress: string;
  /** Override of the hourly refresh limit; null: the service's default. */
  readonly refreshesPerHour: number | null;
  /** Micros. */
  readonly createdAt: number;
}

export interface Collection {
  /** Lower case. */
  readonly collectionAddress: string;
  readonly projectId: number;
  /** As checkMetadataApiUrl gave it when it was set. */
  readonly metadataApiUrl: string;
  readonly tokenPolicy: TokenPolicy;
  /** The owner's ceilings for calls to the Metadata API; null: none declared. */
  readonly maxConcurrency: number | null;
  readonly maxRequestsPerSecond: number | null;
  /** Micros. */
  readonly createdAt: number;
}

export interface ApiKey {
  readonly keyHash: string;
  readonly keyId: string;
  readonly projectId: number;
  readonly name: string;
  readonly requestsPerSecond: number;
  /** Micros. */
  readonly createdAt: number;
  /** Micros; null: the key is in force. */
  readonly revokedAt: number | null;
}

export const projectColumns = "project_id, name, owner_address, refreshes_per_hour, created_at";
export const collectionColumns =
  "collection_address, project_id, metadata_api_url, token_policy, max_concurrency, max_requests_per_second, created_at";
export const apiKeyColumns = "key_hash, key_id, project_id, name, requests_per_second, created_at, revoked_at";

export async function readProject(cassandra: Cassandra, projectId: number): Promise<Project | undefined> {
  const [row] = await cassandra.read(`SELECT ${projectColumns} FROM projects WHERE project_id = ?`, [projectId]);
  return row && projectOf(row);
}

export async function readCollection(cassandra: Cassandra, collectionAddress: string): Promise<Collection | undefined> {
  const query = `SELECT ${collectionColumns} FROM collections WHERE collection_address = ?`;
  const [row] = await cassandra.read(query, [collectionAddress]);
  return row && collectionOf(row);
}

/** Revoked keys too: look at `revokedAt`. */
export async function readApiKey(cassandra: Cassandra, keyHash: string): Promise<ApiKey | undefined> {
  const [row] = await cassandra.read(`SELECT ${apiKeyColumns} FROM api_keys WHERE key_hash = ?`, [keyHash]);
  return row && apiKeyOf(row);
}

/** The projects that the owner has now. Index rows of projects that went to another owner stay behind: the project decides. */
export async function readProjectsOfOwner(cassandra: Cassandra, ownerAddress: string): Promise<Project[]> {
  const rows = await cassandra.read("SELECT project_id FROM projects_by_owner WHERE owner_address = ?", [ownerAddress]);
  const projects = await concurrently(16, rows, (row) => readProject(cassandra, Number(row.project_id)));
  return projects.filter((project) => project?.ownerAddress === ownerAddress).filter((project) => project !== undefined);
}

export function projectOf(row: Row): Project {
  return {
    projectId: Number(row.project_id),
    name: String(row.name),
    ownerAddress: String(row.owner_address),
    refreshesPerHour: setting(row.refreshes_per_hour),
    createdAt: Number(row.created_at),
  };
}

export function collectionOf(row: Row): Collection {
  return {
    collectionAddress: String(row.collection_address),
    projectId: Number(row.project_id),
    metadataApiUrl: String(row.metadata_api_url),
    tokenPolicy: row.token_policy === "open" ? "open" : "registered",
    maxConcurrency: setting(row.max_concurrency),
    maxRequestsPerSecond: setting(row.max_requests_per_second),
    createdAt: Number(row.created_at),
  };
}

function apiKeyOf(row: Row): ApiKey {
  return {
    keyHash: String(row.key_hash),
    keyId: String(row.key_id),
    projectId: Number(row.project_id),
    name: String(row.name),
    requestsPerSecond: Number(row.requests_per_second),
    createdAt: Number(row.created_at),
    revokedAt: setting(row.revoked_at),
  };
}

const setting = (cell: unknown): number | null => (Number(cell ?? 0) === 0 ? null : Number(cell));
