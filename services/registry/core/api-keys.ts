import type { ApiKey, Project } from "../../common/cassandra/registrations.ts";

export type NewApiKey = Pick<ApiKey, "projectId" | "name" | "requestsPerSecond">;
export type ApiKeyChange = Partial<Pick<ApiKey, "name" | "requestsPerSecond">>;

export interface ApiKeyStore {
  readProject(projectId: number): Promise<Project | undefined>;
  read(projectId: number, keyId: string): Promise<ApiKey | undefined>;
  /** Makes the key show up in the project's list, where it can be found to be revoked. Repeatable. */
  index(key: ApiKey): Promise<void>;
  insert(key: ApiKey): Promise<void>;
  /** False when the key is revoked. */
  update(key: ApiKey, change: ApiKeyChange): Promise<boolean>;
  /** False when the key was revoked before; that time stays. */
  revoke(key: ApiKey, revokedAt: number): Promise<boolean>;
}

/** What a new key is made of: chance and time come from outside. */
export interface Minted {
  readonly keyId: string;
  readonly apiKey: string;
  readonly hash: string;
  readonly createdAt: number;
}

/**
 * The index row stands before the key: a key that works but is in no list could not be revoked. The key itself is in the result
 * and nowhere else.
 */
export async function createApiKeyFor(
  store: ApiKeyStore,
  wanted: NewApiKey,
  minted: Minted,
): Promise<{ key: ApiKey; apiKey: string } | "unknown_project"> {
  if ((await store.readProject(wanted.projectId)) === undefined) return "unknown_project";
  const { keyId, hash: keyHash, createdAt } = minted;
  const key: ApiKey = { ...wanted, keyId, keyHash, createdAt, revokedAt: null };
  await store.index(key);
  await store.insert(key);
  return { key, apiKey: minted.apiKey };
}

export async function changeApiKey(
  store: ApiKeyStore,
  place: { readonly projectId: number; readonly keyId: string },
  change: ApiKeyChange,
): Promise<ApiKey | "unknown_api_key" | "revoked"> {
  const key = await store.read(place.projectId, place.keyId);
  if (key === undefined) return "unknown_api_key";
  if (!(await store.update(key, change))) return "revoked";
  return (await store.read(place.projectId, place.keyId)) ?? "unknown_api_key";
}

/** Revoking again changes nothing. */
export async function revokeApiKey(
  store: ApiKeyStore,
  place: { readonly projectId: number; readonly keyId: string },
  revokedAt: number,
): Promise<"revoked" | "revoked_before" | "unknown_api_key"> {
  const key = await store.read(place.projectId, place.keyId);
  if (key === undefined) return "unknown_api_key";
  return (await store.revoke(key, revokedAt)) ? "revoked" : "revoked_before";
}
