import type { Collection, Project } from "../../common/cassandra/registrations.ts";

export type NewCollection = Omit<Collection, "createdAt">;
/** What is absent stays; a null takes a ceiling back. */
export type CollectionChange = Partial<Omit<NewCollection, "collectionAddress" | "projectId">>;

export interface CollectionStore {
  readProject(projectId: number): Promise<Project | undefined>;
  read(collectionAddress: string): Promise<Collection | undefined>;
  /** Makes the collection show up in the project's list, as long as the collection itself names that project. Repeatable. */
  index(projectId: number, collectionAddress: string): Promise<void>;
  /** The collection that stood there already, undefined when this one was inserted. */
  insert(collection: Collection): Promise<Collection | undefined>;
  /** False when there is no such collection. */
  update(collectionAddress: string, change: CollectionChange): Promise<boolean>;
}

/**
 * - unchanged: the same project registered it with the same settings before.
 * - different_settings: the same project, other settings: that is a change, and asked for as one.
 */
export type Registration =
  | { readonly outcome: "created" | "unchanged"; readonly collection: Collection }
  | { readonly outcome: "unknown_project" | "other_project" | "different_settings" };

/**
 * A collection belongs to one project for good. Repeating a registration is harmless, and completes one that was cut off: the
 * index row stands before the collection, and is written again when the collection is there.
 */
export async function registerCollection(
  store: CollectionStore,
  wanted: NewCollection,
  createdAt: number,
): Promise<Registration> {
  if ((await store.readProject(wanted.projectId)) === undefined) return { outcome: "unknown_project" };
  const standing = await store.read(wanted.collectionAddress);
  // Not for somebody else's: it would only leave a row that leads nowhere.
  if (standing === undefined || standing.projectId === wanted.projectId) {
    await store.index(wanted.projectId, wanted.collectionAddress);
  }
  if (standing !== undefined) return compare(standing, wanted);
  const collection = { ...wanted, createdAt };
  const winner = await store.insert(collection);
  return winner === undefined ? { outcome: "created", collection } : compare(winner, wanted);
}

function compare(standing: Collection, wanted: NewCollection): Registration {
  if (standing.projectId !== wanted.projectId) return { outcome: "other_project" };
  const keys = Object.keys(wanted) as (keyof NewCollection)[];
  const same = keys.every((key) => standing[key] === wanted[key]);
  return same ? { outcome: "unchanged", collection: standing } : { outcome: "different_settings" };
}

export async function changeCollection(
  store: CollectionStore,
  collectionAddress: string,
  change: CollectionChange,
): Promise<Collection | "unknown_collection"> {
  if (!(await store.update(collectionAddress, change))) return "unknown_collection";
  return (await store.read(collectionAddress)) ?? "unknown_collection";
}
