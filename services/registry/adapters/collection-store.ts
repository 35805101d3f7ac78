import { concurrently } from "../../common/cassandra/parallel.ts";
import {
  type Collection,
  collectionColumns,
  collectionOf,
  readCollection,
  readProject,
} from "../../common/cassandra/registrations.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import type { CollectionStore } from "../core/collections.ts";
import type { ListSource } from "../core/listing.ts";
import { assignmentsOf } from "./assignments.ts";

const columnsOfFields = {
  metadataApiUrl: "metadata_api_url",
  tokenPolicy: "token_policy",
  maxConcurrency: "max_concurrency",
  maxRequestsPerSecond: "max_requests_per_second",
};

export function createCollectionStore(cassandra: Cassandra): CollectionStore {
  return {
    readProject: (projectId) => readProject(cassandra, projectId),
    read: (collectionAddress) => readCollection(cassandra, collectionAddress),
    index: (projectId, collectionAddress) =>
      cassandra.write("INSERT INTO collections_by_project (project_id, collection_address) VALUES (?, ?)", [
        projectId,
        collectionAddress,
      ]),
    async insert(collection) {
      const query = `INSERT INTO collections (${collectionColumns}) VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS`;
      const { applied, row } = await cassandra.writeIf(query, [
        collection.collectionAddress,
        collection.projectId,
        collection.metadataApiUrl,
        collection.tokenPolicy,
        collection.maxConcurrency,
        collection.maxRequestsPerSecond,
        collection.createdAt,
      ]);
      return applied ? undefined : collectionOf(row);
    },
    async update(collectionAddress, change) {
      const { text, params } = assignmentsOf(change, columnsOfFields);
      const query = `UPDATE collections SET ${text} WHERE collection_address = ? IF EXISTS`;
      const { applied } = await cassandra.writeIf(query, [...params, collectionAddress]);
      return applied;
    },
  };
}

/** The collections of one project by address; registrations that never came through are stepped over. */
export function collectionsOfProject(cassandra: Cassandra, projectId: number): ListSource<Collection> {
  return {
    async keysAfter(after, limit) {
      const query =
        "SELECT collection_address FROM collections_by_project WHERE project_id = ? AND collection_address > ? LIMIT ?";
      const rows = await cassandra.read(query, [projectId, after, limit]);
      return rows.map((row) => String(row.collection_address));
    },
    async resolve(keys) {
      const collections = await concurrently(16, keys, (key) => readCollection(cassandra, key));
      return collections.map((collection) => (collection?.projectId === projectId ? collection : undefined));
    },
  };
}
