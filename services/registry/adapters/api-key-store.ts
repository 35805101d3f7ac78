import { concurrently } from "../../common/cassandra/parallel.ts";
import { type ApiKey, apiKeyColumns, readApiKey, readProject } from "../../common/cassandra/registrations.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import type { ApiKeyStore } from "../core/api-keys.ts";
import type { ListSource } from "../core/listing.ts";
import { assignmentsOf } from "./assignments.ts";

const columnsOfFields = { name: "name", requestsPerSecond: "requests_per_second" };

export function createApiKeyStore(cassandra: Cassandra): ApiKeyStore {
  return {
    readProject: (projectId) => readProject(cassandra, projectId),
    read: (projectId, keyId) => readKeyOfProject(cassandra, projectId, keyId),
    index: (key) =>
      cassandra.write("INSERT INTO api_keys_by_project (project_id, key_id, key_hash) VALUES (?, ?, ?)", [
        key.projectId,
        key.keyId,
        key.keyHash,
      ]),
    async insert(key) {
      const query = `INSERT INTO api_keys (${apiKeyColumns}) VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS`;
      const { keyHash, keyId, projectId, name, requestsPerSecond, createdAt, revokedAt } = key;
      await cassandra.writeIf(query, [keyHash, keyId, projectId, name, requestsPerSecond, createdAt, revokedAt]);
    },
    async update(key, change) {
      const { text, params } = assignmentsOf(change, columnsOfFields);
      const query = `UPDATE api_keys SET ${text} WHERE key_hash = ? IF key_id = ? AND revoked_at = null`;
      const { applied } = await cassandra.writeIf(query, [...params, key.keyHash, key.keyId]);
      return applied;
    },
    async revoke(key, revokedAt) {
      const query = "UPDATE api_keys SET revoked_at = ? WHERE key_hash = ? IF key_id = ? AND revoked_at = null";
      const { applied } = await cassandra.writeIf(query, [revokedAt, key.keyHash, key.keyId]);
      return applied;
    },
  };
}

async function readKeyOfProject(cassandra: Cassandra, projectId: number, keyId: string): Promise<ApiKey | undefined> {
  const query = "SELECT key_hash FROM api_keys_by_project WHERE project_id = ? AND key_id = ?";
  const [row] = await cassandra.read(query, [projectId, keyId]);
  return row && readApiKey(cassandra, String(row.key_hash));
}

/** The API keys of one project, revoked ones too, in the order of their creation: key ids are UUIDs of version 7. */
export function apiKeysOfProject(cassandra: Cassandra, projectId: number): ListSource<ApiKey> {
  const hashes = new Map<string, string>();
  return {
    async keysAfter(after, limit) {
      const query = "SELECT key_id, key_hash FROM api_keys_by_project WHERE project_id = ? AND key_id > ? LIMIT ?";
      const rows = await cassandra.read(query, [projectId, after, limit]);
      for (const row of rows) hashes.set(String(row.key_id), String(row.key_hash));
      return rows.map((row) => String(row.key_id));
    },
    resolve: (keys) => concurrently(16, keys, (key) => readApiKey(cassandra, hashes.get(key) ?? "")),
  };
}
