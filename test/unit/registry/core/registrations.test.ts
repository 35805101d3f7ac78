import { describe, expect, it } from "vitest";
import { changeApiKey, createApiKeyFor, revokeApiKey } from "../../../../services/registry/core/api-keys.ts";
import { changeCollection, registerCollection } from "../../../../services/registry/core/collections.ts";
import { changeProject, createProject } from "../../../../services/registry/core/projects.ts";
import { Crash, Tables, Writes } from "./stores.ts";

const alice = `0x${"a".repeat(40)}`;
const bob = `0x${"b".repeat(40)}`;
const address = `0x${"c".repeat(40)}`;
const settings = { name: "Game", ownerAddress: alice, refreshesPerHour: null };
const minted = { keyId: "key-1", apiKey: "amr_x", hash: "hash-1", createdAt: 7 };

const wanted = (projectId: number) => ({
  collectionAddress: address,
  projectId,
  metadataApiUrl: "https://api.example.com",
  tokenPolicy: "registered" as const,
  maxConcurrency: null,
  maxRequestsPerSecond: null,
});

async function withProjects(count: number): Promise<Tables> {
  const tables = new Tables();
  for (let made = 0; made < count; made += 1) await createProject(tables.projectStore(), settings, 1);
  return tables;
}

describe("a registration that is cut off", () => {
  const registrations: [string, (tables: Tables, writes: Writes) => Promise<unknown>][] = [
    ["a project", (tables, writes) => createProject(tables.projectStore(writes), settings, 1)],
    ["a new owner", (tables, writes) => changeProject(tables.projectStore(writes), 1, { ownerAddress: bob })],
    ["a collection", (tables, writes) => registerCollection(tables.collectionStore(writes), wanted(1), 1)],
    [
      "an API key",
      (tables, writes) => createApiKeyFor(tables.apiKeyStore(writes), { projectId: 1, name: "k", requestsPerSecond: 1 }, minted),
    ],
  ];
  const cases = registrations.flatMap(([what, register]) => [0, 1, 2].map((after) => [what, after, register] as const));

  it.each(cases)(
    "leaves nothing that no list shows, and a repetition completes it: %s, after %i writes",
    async (what, after, register) => {
      const tables = await withProjects(1);
      await register(tables, new Writes(after)).catch((error: unknown) => expect(error).toBeInstanceOf(Crash));
      expect(tables.unreachable()).toEqual([]);
      await register(tables, new Writes());
      expect(tables.unreachable()).toEqual([]);
      const made = { projects: tables.projects.size, collections: tables.collections.size, apiKeys: tables.apiKeys.size };
      expect(Math.max(...Object.values(made)), what).toBeGreaterThan(0);
    },
  );
});

describe("a project", () => {
  it("never takes the place of another one when the sequence was set back", async () => {
    const tables = await withProjects(3);
    tables.nextProjectId = 1;
    const created = await createProject(tables.projectStore(), { ...settings, name: "New" }, 2);
    expect(created.projectId).toBe(4);
    expect([...tables.projects.values()].map(({ name }) => name)).toEqual(["Game", "Game", "Game", "New"]);
  });

  it("goes to a new owner's list and keeps what was not mentioned", async () => {
    const tables = await withProjects(1);
    expect(await changeProject(tables.projectStore(), 1, { ownerAddress: bob })).toEqual({
      projectId: 1,
      name: "Game",
      ownerAddress: bob,
      refreshesPerHour: null,
      createdAt: 1,
    });
    expect(tables.projectsByOwner).toContain(`${bob}/1`);
  });

  it("that is unknown is not made by a change, nor put into a list", async () => {
    const tables = new Tables();
    expect(await changeProject(tables.projectStore(), 1, { ownerAddress: bob })).toBe("unknown_project");
    expect([...tables.projects, ...tables.projectsByOwner]).toEqual([]);
  });
});

describe("a collection", () => {
  it("is registered once; again with the same settings is no conflict", async () => {
    const tables = await withProjects(1);
    const first = await registerCollection(tables.collectionStore(), wanted(1), 1);
    const second = await registerCollection(tables.collectionStore(), wanted(1), 2);
    expect(first).toEqual({ outcome: "created", collection: { ...wanted(1), createdAt: 1 } });
    expect(second).toEqual({ outcome: "unchanged", collection: { ...wanted(1), createdAt: 1 } });
  });

  it("belongs to one project: another one changes nothing, not even its own list", async () => {
    const tables = await withProjects(2);
    await registerCollection(tables.collectionStore(), wanted(1), 1);
    expect(await registerCollection(tables.collectionStore(), wanted(2), 2)).toEqual({ outcome: "other_project" });
    expect(tables.collections.get(address)?.projectId).toBe(1);
    expect(tables.collectionsByProject).toEqual(new Set([`1/${address}`]));
  });

  it("belongs to the one that was first when two register it at the same time", async () => {
    const tables = await withProjects(2);
    const outcomes = await Promise.all([1, 2].map((id) => registerCollection(tables.collectionStore(), wanted(id), id)));
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["created", "other_project"]);
    expect(tables.unreachable()).toEqual([]);
  });

  it("is not changed by a registration with other settings", async () => {
    const tables = await withProjects(1);
    await registerCollection(tables.collectionStore(), wanted(1), 1);
    const other = { ...wanted(1), maxConcurrency: 4 };
    expect(await registerCollection(tables.collectionStore(), other, 2)).toEqual({ outcome: "different_settings" });
    expect(tables.collections.get(address)?.maxConcurrency).toBeNull();
  });

  it("of an unknown project is not registered", async () => {
    const tables = new Tables();
    expect(await registerCollection(tables.collectionStore(), wanted(1), 1)).toEqual({ outcome: "unknown_project" });
    expect([...tables.collections, ...tables.collectionsByProject]).toEqual([]);
  });

  it("that is unknown is not made by a change", async () => {
    const tables = new Tables();
    expect(await changeCollection(tables.collectionStore(), address, { maxConcurrency: 1 })).toBe("unknown_collection");
    expect([...tables.collections]).toEqual([]);
  });
});

describe("an API key", () => {
  const place = { projectId: 1, keyId: "key-1" };

  async function withKey(): Promise<Tables> {
    const tables = await withProjects(1);
    await createApiKeyFor(tables.apiKeyStore(), { projectId: 1, name: "k", requestsPerSecond: 1 }, minted);
    return tables;
  }

  it("is kept by its hash alone", async () => {
    const tables = await withKey();
    expect(JSON.stringify([...tables.apiKeys, ...tables.apiKeysByProject])).not.toContain(minted.apiKey);
  });

  it("stays revoked, with the time of the first revocation", async () => {
    const tables = await withKey();
    const revoke = (atMicros: number) => revokeApiKey(tables.apiKeyStore(), place, atMicros);
    expect([await revoke(10), await revoke(20)]).toEqual(["revoked", "revoked_before"]);
    expect(await changeApiKey(tables.apiKeyStore(), place, { requestsPerSecond: 9 })).toBe("revoked");
    expect(tables.apiKeys.get("hash-1")).toMatchObject({ revokedAt: 10, requestsPerSecond: 1 });
  });

  it("that is changed is answered as it stands then, with what somebody else has changed meanwhile", async () => {
    const store = (await withKey()).apiKeyStore();
    const update: typeof store.update = async (key, change) => {
      await store.update(key, { name: "other" });
      return store.update(key, change);
    };
    expect(await changeApiKey({ ...store, update }, place, { requestsPerSecond: 9 })).toMatchObject({
      name: "other",
      requestsPerSecond: 9,
    });
  });

  it("of another project is unknown, to read, to change and to revoke", async () => {
    const tables = await withKey();
    const foreign = { projectId: 2, keyId: "key-1" };
    expect(await changeApiKey(tables.apiKeyStore(), foreign, { name: "x" })).toBe("unknown_api_key");
    expect(await revokeApiKey(tables.apiKeyStore(), foreign, 10)).toBe("unknown_api_key");
    expect(tables.apiKeys.get("hash-1")).toMatchObject({ name: "k", revokedAt: null });
  });
});
