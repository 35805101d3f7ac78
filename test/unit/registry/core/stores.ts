import type { ApiKey, Collection, Project } from "../../../../services/common/cassandra/registrations.ts";
import type { ApiKeyStore } from "../../../../services/registry/core/api-keys.ts";
import type { CollectionStore } from "../../../../services/registry/core/collections.ts";
import type { ProjectStore } from "../../../../services/registry/core/projects.ts";

export class Crash extends Error {}

/** Lets a number of writes happen and dies before the next one. */
export class Writes {
  #left: number;

  constructor(left = Number.POSITIVE_INFINITY) {
    this.#left = left;
  }

  happen<T>(write: () => T): Promise<T> {
    this.#left -= 1;
    return this.#left < 0 ? Promise.reject(new Crash()) : Promise.resolve(write());
  }
}

/** The registry's tables in memory: rows and the index rows that lists are made of. */
export class Tables {
  readonly projects = new Map<number, Project>();
  readonly projectsByOwner = new Set<string>();
  readonly collections = new Map<string, Collection>();
  readonly collectionsByProject = new Set<string>();
  readonly apiKeys = new Map<string, ApiKey>();
  readonly apiKeysByProject = new Map<string, string>();
  nextProjectId = 1;

  projectStore(writes = new Writes()): ProjectStore {
    return {
      nextId: () =>
        writes.happen(() => {
          this.nextProjectId += 1;
          return this.nextProjectId - 1;
        }),
      index: (owner, projectId) => writes.happen(() => void this.projectsByOwner.add(`${owner}/${projectId}`)),
      insert: (project) => writes.happen(() => insertNew(this.projects, project.projectId, project)),
      read: async (projectId) => this.projects.get(projectId),
      update: (projectId, change) => writes.happen(() => update(this.projects, projectId, change)),
    };
  }

  collectionStore(writes = new Writes()): CollectionStore {
    return {
      readProject: async (projectId) => this.projects.get(projectId),
      read: async (address) => this.collections.get(address),
      index: (projectId, address) => writes.happen(() => void this.collectionsByProject.add(`${projectId}/${address}`)),
      insert: (collection) =>
        writes.happen(() => {
          const standing = this.collections.get(collection.collectionAddress);
          insertNew(this.collections, collection.collectionAddress, collection);
          return standing;
        }),
      update: (address, change) => writes.happen(() => update(this.collections, address, change)),
    };
  }

  apiKeyStore(writes = new Writes()): ApiKeyStore {
    return {
      readProject: async (projectId) => this.projects.get(projectId),
      read: async (projectId, keyId) => this.apiKeys.get(this.apiKeysByProject.get(`${projectId}/${keyId}`) ?? ""),
      index: (key) => writes.happen(() => void this.apiKeysByProject.set(`${key.projectId}/${key.keyId}`, key.keyHash)),
      insert: (key) => writes.happen(() => void insertNew(this.apiKeys, key.keyHash, key)),
      update: (key, change) =>
        writes.happen(() => this.apiKeys.get(key.keyHash)?.revokedAt === null && update(this.apiKeys, key.keyHash, change)),
      revoke: (key, revokedAt) =>
        writes.happen(
          () => this.apiKeys.get(key.keyHash)?.revokedAt === null && update(this.apiKeys, key.keyHash, { revokedAt }),
        ),
    };
  }

  /** What no list shows although it is there. */
  unreachable(): string[] {
    return [
      ...[...this.projects.values()]
        .map(({ ownerAddress, projectId }) => `${ownerAddress}/${projectId}`)
        .filter(isNotIn(this.projectsByOwner)),
      ...[...this.collections.values()]
        .map((one) => `${one.projectId}/${one.collectionAddress}`)
        .filter(isNotIn(this.collectionsByProject)),
      ...[...this.apiKeys.values()].map((one) => `${one.projectId}/${one.keyId}`).filter(isNotIn(this.apiKeysByProject)),
    ];
  }
}

const isNotIn = (index: { has(key: string): boolean }) => (key: string) => !index.has(key);

function insertNew<K, V>(table: Map<K, V>, key: K, value: V): boolean {
  if (table.has(key)) return false;
  table.set(key, value);
  return true;
}

function update<K, V extends object>(table: Map<K, V>, key: K, change: Partial<V>): boolean {
  const standing = table.get(key);
  if (standing === undefined) return false;
  table.set(key, { ...standing, ...change });
  return true;
}
