import type { Collection, Project } from "../../common/cassandra/registrations.ts";
import { type Refusal, refuse } from "../../common/http/answer.ts";
import type { SignedCaller } from "./signed.ts";

export type Found<T> = ({ readonly ok: true } & T) | { readonly ok: false; readonly refusal: Refusal };

/**
 * What the registry has written, read for every request. Nothing of it is cached: a third of a millisecond buys that whoever
 * buys a project may use it at once and whoever sold it no longer, and that a new URL is the one of the next refresh.
 */
export interface Registrations {
  readCollection(collectionAddress: string): Promise<Collection | undefined>;
  readProject(projectId: number): Promise<Project | undefined>;
  readProjectsOfOwner(ownerAddress: string): Promise<readonly Project[]>;
}

/**
 * The registrations with each project read once: for one request, whose collection is nearly always of its key's project. The read
 * that checks the key then runs beside the collection's, and the project needs none behind it.
 */
export function readingProjectsOnce(registrations: Registrations): Registrations {
  const projects = new Map<number, Promise<Project | undefined>>();
  return {
    ...registrations,
    readProject: (projectId) => {
      const reading = projects.get(projectId) ?? registrations.readProject(projectId);
      projects.set(projectId, reading);
      return reading;
    },
  };
}

/** Collections are public, on the chain: that one is registered here is no secret, so another owner's is a 403. */
export async function findOwnCollection(
  collectionAddress: string,
  caller: SignedCaller,
  registrations: Registrations,
): Promise<Found<{ collection: Collection; project: Project }>> {
  const collection = await registrations.readCollection(collectionAddress);
  const project = collection && (await registrations.readProject(collection.projectId));
  if (collection === undefined || project === undefined) {
    return { ok: false, refusal: refuse(404, "not_found", "there is no such collection") };
  }
  if (project.ownerAddress === caller.signer) return { ok: true, collection, project };
  return { ok: false, refusal: refuse(403, "not_the_owner", "the collection belongs to a project of another owner") };
}

/** An API key is for its project's owner alone: specification section 5, rule 3. */
export async function refuseForeignKey(caller: SignedCaller, { readProject }: Registrations): Promise<Refusal | undefined> {
  if (caller.key === undefined || (await readProject(caller.key.projectId))?.ownerAddress === caller.signer) return undefined;
  return refuse(403, "not_the_owner", "the API key belongs to a project of another owner");
}
