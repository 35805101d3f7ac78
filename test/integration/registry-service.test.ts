import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { waitFor } from "../support/wait-for.ts";
import { newAddress, RegistryService, setUpRegistry } from "./registry-service.ts";

let setUp: Awaited<ReturnType<typeof setUpRegistry>>;
let registry: RegistryService;

beforeAll(async () => {
  setUp = await setUpRegistry();
  registry = setUp.registry;
});

afterAll(() => setUp.close());

describe("who may call", () => {
  it.each<[string, Record<string, string>]>([
    ["no token", { authorization: "" }],
    ["another token", { authorization: "Bearer dev-admin-tokem" }],
    ["a longer token", { authorization: "Bearer dev-admin-token2" }],
    ["another scheme", { authorization: "Basic dev-admin-token" }],
    ["the token alone", { authorization: "dev-admin-token" }],
    ["two tokens", { authorization: "Bearer dev-admin-token, Bearer dev-admin-token" }],
  ])("is whoever has the admin token, not somebody with %s", async (_what, headers) => {
    const refused = await registry.call("GET", "/v1/projects", undefined, headers);
    expect(refused).toMatchObject({ status: 401, body: { code: "unauthorized" } });
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    expect((await registry.call("POST", "/v1/projects", { name: "x", owner_address: newAddress() }, headers)).status).toBe(401);
  });

  it("does not learn which paths exist without it", async () => {
    expect((await registry.call("GET", "/v1/nothing", undefined, { authorization: "" })).status).toBe(401);
    expect(await registry.call("GET", "/v1/nothing")).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(await registry.call("PUT", "/v1/projects", {})).toMatchObject({ status: 405, body: { code: "method_not_allowed" } });
  });
});

describe("the service", () => {
  it("writes no tombstone, whatever is set, taken back, repeated or revoked", async () => {
    const projectId = await registry.newProject();
    await registry.call("PATCH", `/v1/projects/${projectId}`, { refreshes_per_hour: null, owner_address: newAddress() });
    const collection = await registry.newCollection(projectId);
    await registry.call("PATCH", `/v1/collections/${collection}`, { max_concurrency: null, max_requests_per_second: null });
    await registry.call("POST", `/v1/collections/${collection}/tokens`, { token_ids: ["1", "2"] });
    const { body } = await registry.call("POST", `/v1/projects/${projectId}/api-keys`, { name: "k", requests_per_second: 1 });
    await registry.call("DELETE", `/v1/projects/${projectId}/api-keys/${body.key_id}`);
    const tables = ["projects", "projects_by_owner", "collections", "collections_by_project", "api_keys", "api_keys_by_project"];
    for (const table of [...tables, "tokens", "sequences"]) {
      const { liveRowCount, tombstoneCount } = await setUp.keyspace.scan(table);
      expect({ table, written: liveRowCount > 0, tombstoneCount }).toEqual({ table, written: true, tombstoneCount: 0 });
    }
  });

  it("leaves one line for every change, with ids and without secrets", async () => {
    const projectId = await registry.newProject();
    const { body } = await registry.call("POST", `/v1/projects/${projectId}/api-keys`, { name: "k", requests_per_second: 1 });
    await registry.call("DELETE", `/v1/projects/${projectId}/api-keys/${body.key_id}`);
    await registry.call("DELETE", `/v1/projects/${projectId}/api-keys/${body.key_id}`);
    const logs = registry.context.logs;
    const changes = logs.filter((line) => line.projectId === projectId && String(line.event).startsWith("registry."));
    expect(changes.map(({ event }) => event)).toEqual([
      "registry.project_created",
      "registry.api_key_created",
      "registry.api_key_revoked",
    ]);
    expect(JSON.stringify(logs)).not.toContain("dev-admin-token");
  });

  it("describes every endpoint it has to whoever asks, without a reference that leads nowhere", async () => {
    const { status, body } = await registry.call("GET", "/openapi.json", undefined, { authorization: "" });
    expect(status).toBe(200);
    const operations = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    );
    expect(operations.sort()).toEqual([
      "delete /v1/projects/{project_id}/api-keys/{key_id}",
      "get /v1/collections/{collection_address}",
      "get /v1/collections/{collection_address}/tokens/{token_id}",
      "get /v1/projects",
      "get /v1/projects/{project_id}",
      "get /v1/projects/{project_id}/api-keys",
      "get /v1/projects/{project_id}/api-keys/{key_id}",
      "get /v1/projects/{project_id}/collections",
      "patch /v1/collections/{collection_address}",
      "patch /v1/projects/{project_id}",
      "patch /v1/projects/{project_id}/api-keys/{key_id}",
      "post /v1/collections/{collection_address}/tokens",
      "post /v1/projects",
      "post /v1/projects/{project_id}/api-keys",
      "post /v1/projects/{project_id}/collections",
    ]);
    const references = [...JSON.stringify(body).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference);
    expect(new Set(references)).toEqual(new Set(["#/components/responses/Refused"]));
    expect(body.components).toHaveProperty("responses.Refused.content");
  });

  it("answers 503, to be tried again, when Cassandra is lost, and works when it is back", async () => {
    const wire = await TcpProxy.to(setUp.keyspace.cluster.contactPoints[0] ?? "");
    const far = await RegistryService.start(setUp.keyspace, wire.address);
    try {
      const path = `/v1/projects/${await far.newProject()}`;
      await wire.down();
      const down = await far.call("GET", path);
      expect(down).toMatchObject({ status: 503, body: { code: "unavailable" } });
      expect(down.headers.get("retry-after")).toMatch(/^\d+$/);
      expect(await far.context.health.ready()).toEqual({ cassandra: expect.stringContaining("does not answer") });
      await wire.up();
      await waitFor(
        "Cassandra",
        () => far.call("GET", path),
        ({ status }) => status === 200,
      );
      // Each of its connections comes back by itself.
      await waitFor(
        "its health",
        () => far.context.health.ready(),
        (problems) => Object.keys(problems).length === 0,
      );
    } finally {
      await far.stop();
      await wire.down();
    }
  });

  it("does not start in production with the token that everybody knows", async () => {
    const child = spawn(process.execPath, ["services/registry/main.ts"], {
      env: { NODE_ENV: "production", LOG_LEVEL: "loud" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
    });
    const [code] = await once(child, "close");
    expect({ code, said }).toEqual({
      code: 2,
      said: expect.stringMatching(/LOG_LEVEL: [\s\S]*ADMIN_TOKEN: must be set in production/),
    });
  });
});
