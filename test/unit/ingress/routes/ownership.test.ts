import { expect, it } from "vitest";
import type { Collection, Project } from "../../../../services/common/cassandra/registrations.ts";
import {
  findOwnCollection,
  type Registrations,
  readingProjectsOnce,
  refuseForeignKey,
} from "../../../../services/ingress/routes/ownership.ts";

const signer = "0x00000000000000000000000000000000000000aa";
const collectionAddress = "0x00000000000000000000000000000000000000cc";

/** The collection is project 7's; projects belong to these owners. The reads are noted as they begin. */
function registrationsOf(owners: Readonly<Record<number, string>>) {
  const reads: string[] = [];
  const project = (projectId: number, ownerAddress: string): Project => {
    return { projectId, ownerAddress, name: "", refreshesPerHour: null, createdAt: 1 };
  };
  const collection = { collectionAddress, projectId: 7 } as Collection;
  const registrations: Registrations = {
    readCollection: async () => {
      reads.push("collection");
      return collection;
    },
    readProject: async (projectId) => {
      reads.push(`project ${projectId}`);
      const owner = owners[projectId];
      return owner === undefined ? undefined : project(projectId, owner);
    },
    readProjectsOfOwner: async () => [],
  };
  return { registrations, reads };
}

function callerOf(keysProject: number) {
  return { bucket: "b", signer, key: { projectId: keysProject, requestsPerSecond: 5 } };
}

async function statusesOf(registrations: Registrations, keysProject: number) {
  const [owned, foreignKey] = await Promise.all([
    findOwnCollection(collectionAddress, callerOf(keysProject), registrations),
    refuseForeignKey(callerOf(keysProject), registrations),
  ]);
  return [owned.ok ? 200 : owned.refusal.status, foreignKey?.status];
}

it("reads the project of the key and of the collection once, beside the collection", async () => {
  const { registrations, reads } = registrationsOf({ 7: signer });
  expect(await statusesOf(readingProjectsOnce(registrations), 7)).toEqual([200, undefined]);
  expect(reads).toEqual(["collection", "project 7"]);
});

it.each([
  ["a key of another project of the owner", 8, { 7: signer, 8: signer }, [200, undefined]],
  ["a key of another owner's project", 8, { 7: signer, 8: "0xbb" }, [200, 403]],
  ["another owner's project", 7, { 7: "0xbb" }, [403, 403]],
  ["a project that is gone", 7, {}, [404, 403]],
])("judges as with a read for each: %s", async (_, keysProject, owners, statuses) => {
  const { registrations } = registrationsOf(owners);
  expect(await statusesOf(readingProjectsOnce(registrations), keysProject)).toEqual(statuses);
  expect(await statusesOf(registrations, keysProject)).toEqual(statuses);
});

it("forgets with the request: the next one reads anew", async () => {
  const { registrations, reads } = registrationsOf({ 7: signer });
  await statusesOf(readingProjectsOnce(registrations), 7);
  await statusesOf(readingProjectsOnce(registrations), 7);
  expect(reads.filter((read) => read === "project 7")).toHaveLength(2);
});
