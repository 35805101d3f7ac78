import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readApiKey } from "../../services/common/cassandra/registrations.ts";
import { parseApiKey } from "../../services/common/http/api-key.ts";
import { newAddress, type RegistryService, setUpRegistry } from "./registry-service.ts";

let setUp: Awaited<ReturnType<typeof setUpRegistry>>;
let registry: RegistryService;

beforeAll(async () => {
  setUp = await setUpRegistry();
  registry = setUp.registry;
});

afterAll(() => setUp.close());

describe("tokens", () => {
  it("are registered, each once, and may be registered again", async () => {
    const collection = await registry.newCollection(await registry.newProject());
    const path = `/v1/collections/${collection}/tokens`;
    const token_ids = ["0", "255", "256", "255", (2n ** 256n - 1n).toString()];
    expect(await registry.call("POST", path, { token_ids })).toMatchObject({ status: 200, body: { registered: 4 } });
    expect(await registry.call("POST", path, { token_ids })).toMatchObject({ status: 200, body: { registered: 4 } });
    for (const tokenId of token_ids) {
      const registered_at = expect.stringMatching(/^\d{4}-.*Z$/);
      expect((await registry.call("GET", `${path}/${tokenId}`)).body).toMatchObject({
        token_id: tokenId,
        registered_at,
        metadata: null,
      });
    }
    expect((await registry.call("GET", `${path}/1`)).status).toBe(404);
  });

  it("keep the metadata of their last refresh when they are registered again, and take the next one", async () => {
    const collection = await registry.newCollection(await registry.newProject());
    const path = `/v1/collections/${collection}/tokens`;
    await registry.call("POST", path, { token_ids: ["7"] });
    const query =
      "UPDATE tokens USING TIMESTAMP ? SET metadata = ?, version = ? WHERE collection_address = ? AND bucket = '0' AND token_id = '7'";
    const version = 2 ** 40 + 3;
    // A version is far below any clock: a registration that touched these cells would hide them for ever.
    await setUp.cassandra.write(query, [version, '{"level":1}', version, collection]);
    await registry.call("POST", path, { token_ids: ["7"] });
    expect((await registry.call("GET", `${path}/7`)).body).toMatchObject({ metadata: '{"level":1}', version });
    await setUp.cassandra.write(query, [version + 1, '{"level":2}', version + 1, collection]);
    expect((await registry.call("GET", `${path}/7`)).body).toMatchObject({ metadata: '{"level":2}', version: version + 1 });
  });

  it("come ten thousand at a time, of the longest kind and spread over as many partitions", async () => {
    const collection = await registry.newCollection(await registry.newProject());
    const path = `/v1/collections/${collection}/tokens`;
    const token_ids = Array.from({ length: 10_000 }, (_, number) => (2n ** 256n - 1n - BigInt(number) * 256n).toString());
    expect(await registry.call("POST", path, { token_ids })).toMatchObject({ status: 200, body: { registered: 10_000 } });
    for (const tokenId of [token_ids[0], token_ids[5_000], token_ids[9_999]]) {
      expect((await registry.call("GET", `${path}/${tokenId}`)).status).toBe(200);
    }
    expect((await registry.call("POST", path, { token_ids: [...token_ids, "1"] })).status).toBe(400);
    const tooLong = { token_ids: Array.from({ length: 15_000 }, () => "1".repeat(78)) };
    expect(await registry.call("POST", path, tooLong)).toMatchObject({ status: 413, body: { code: "payload_too_large" } });
  });

  it("are registered all or not at all when one of them is none", async () => {
    const collection = await registry.newCollection(await registry.newProject());
    const refused = await registry.call("POST", `/v1/collections/${collection}/tokens`, { token_ids: ["1", "02"] });
    expect(refused).toMatchObject({ status: 400, body: { details: [{ field: "token_ids[1]", rule: "token_id" }] } });
    expect((await registry.call("GET", `/v1/collections/${collection}/tokens/1`)).status).toBe(404);
    expect((await registry.call("POST", `/v1/collections/${newAddress()}/tokens`, { token_ids: ["1"] })).status).toBe(404);
  });
});

describe("API keys", () => {
  it("are shown once and stored as a hash alone", async () => {
    const keys = `/v1/projects/${await registry.newProject()}/api-keys`;
    const { status, body } = await registry.call("POST", keys, { name: "backend", requests_per_second: 50 });
    expect(status).toBe(201);
    const { api_key: apiKey, ...rest } = body;
    const stored = await readApiKey(setUp.cassandra, parseApiKey(String(apiKey))?.hash ?? "");
    expect(stored).toMatchObject({ keyId: rest.key_id, projectId: rest.project_id, requestsPerSecond: 50, revokedAt: null });
    expect((await registry.call("GET", `${keys}/${rest.key_id}`)).body).toEqual(rest);
    expect(await registry.readAll(keys, 50)).toEqual([rest]);
    const secret = String(apiKey).slice(4);
    for (const table of ["api_keys", "api_keys_by_project"]) expect(await setUp.keyspace.dump(table)).not.toContain(secret);
    expect(JSON.stringify(registry.context.logs)).not.toContain(secret);
  });

  it("can be changed until they are revoked, and stay revoked since the first time", async () => {
    const keys = `/v1/projects/${await registry.newProject()}/api-keys`;
    const created = await registry.call("POST", keys, { name: "backend", requests_per_second: 50 });
    const path = `${keys}/${created.body.key_id}`;
    expect((await registry.call("PATCH", path, { requests_per_second: 60 })).body).toMatchObject({
      name: "backend",
      requests_per_second: 60,
    });
    expect((await registry.call("DELETE", path)).status).toBe(204);
    const revoked = await registry.call("GET", path);
    expect(revoked.body.revoked_at).toEqual(expect.stringMatching(/Z$/));
    expect((await registry.call("DELETE", path)).status).toBe(204);
    expect(await registry.call("PATCH", path, { requests_per_second: 70 })).toMatchObject({
      status: 409,
      body: { code: "conflict" },
    });
    expect((await registry.call("GET", path)).body).toEqual(revoked.body);
    const stored = await readApiKey(setUp.cassandra, parseApiKey(String(created.body.api_key))?.hash ?? "");
    expect(stored?.revokedAt).toBeGreaterThan(0);
  });

  it("of one project cannot be seen or revoked through another", async () => {
    const [mine, theirs] = [await registry.newProject(), await registry.newProject()];
    const { body } = await registry.call("POST", `/v1/projects/${mine}/api-keys`, { name: "k", requests_per_second: 1 });
    const foreign = `/v1/projects/${theirs}/api-keys/${body.key_id}`;
    for (const method of ["GET", "DELETE"] as const) expect((await registry.call(method, foreign)).status).toBe(404);
    expect((await registry.call("PATCH", foreign, { name: "x" })).status).toBe(404);
    expect((await registry.call("GET", `/v1/projects/${mine}/api-keys/${body.key_id}`)).body).toMatchObject({
      name: "k",
      revoked_at: null,
    });
    expect((await registry.call("POST", "/v1/projects/999999/api-keys", { name: "k", requests_per_second: 1 })).status).toBe(404);
  });

  it("are listed oldest first, in pages that neither skip nor repeat", async () => {
    const keys = `/v1/projects/${await registry.newProject()}/api-keys`;
    const ids: unknown[] = [];
    for (let made = 0; made < 5; made += 1) {
      ids.push((await registry.call("POST", keys, { name: `key ${made}`, requests_per_second: 1 })).body.key_id);
    }
    expect((await registry.readAll(keys, 2)).map((key) => key.key_id)).toEqual(ids);
  });
});
