import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readProjectsOfOwner } from "../../services/common/cassandra/registrations.ts";
import { metadataApiUrl, newAddress, type RegistryService, setUpRegistry } from "./registry-service.ts";

let setUp: Awaited<ReturnType<typeof setUpRegistry>>;
let registry: RegistryService;

beforeAll(async () => {
  setUp = await setUpRegistry();
  registry = setUp.registry;
});

afterAll(() => setUp.close());

describe("projects", () => {
  it("get a short number, are read back as they were written, and keep what a change does not mention", async () => {
    const owner = newAddress();
    const created = await registry.call("POST", "/v1/projects", { name: "Game", owner_address: owner, refreshes_per_hour: 40 });
    const project = {
      name: "Game",
      owner_address: owner,
      refreshes_per_hour: 40,
      created_at: expect.stringMatching(/\.\d{6}Z$/),
    };
    expect(created).toMatchObject({ status: 201, body: { ...project, project_id: expect.any(Number) } });
    const path = `/v1/projects/${created.body.project_id}`;
    expect(await registry.call("GET", path)).toMatchObject({ status: 200, body: created.body });
    const changed = await registry.call("PATCH", path, { refreshes_per_hour: null });
    expect(changed).toMatchObject({ status: 200, body: { ...created.body, refreshes_per_hour: null } });
    expect((await registry.call("GET", path)).body).toEqual(changed.body);
  });

  it("never share a number, however many are registered at once", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => registry.newProject()));
    expect(new Set(ids).size).toBe(20);
    expect(Math.max(...ids)).toBeLessThan(1_000);
  });

  it("are in the list of their present owner alone, whatever their former owners' lists say", async () => {
    const [former, present] = [newAddress(), newAddress()];
    const ids = [await registry.newProject(former), await registry.newProject(former), await registry.newProject(former)];
    await registry.call("PATCH", `/v1/projects/${ids[1]}`, { owner_address: present });
    const idsOf = async (owner: string) =>
      (await registry.readAll(`/v1/projects?owner_address=${owner}`, 1)).map((one) => one.project_id);
    expect(await idsOf(former)).toEqual([ids[0], ids[2]]);
    expect(await idsOf(present)).toEqual([ids[1]]);
    expect((await readProjectsOfOwner(setUp.cassandra, former)).map(({ projectId }) => projectId)).toEqual([ids[0], ids[2]]);
  });

  it("are all in the list, once each, whatever the size of the pages", async () => {
    for (let made = 0; made < 3; made += 1) await registry.newProject();
    const whole = (await registry.readAll("/v1/projects", 200)).map((one) => one.project_id);
    const inPages = (await registry.readAll("/v1/projects", 7)).map((one) => one.project_id);
    const rows = await setUp.cassandra.read("SELECT project_id FROM projects", []);
    expect(inPages).toEqual(whole);
    expect([...whole].sort()).toEqual(rows.map((row) => Number(row.project_id)).sort());
  });

  it.each([
    ["/v1/projects/999999", 404, "not_found"],
    ["/v1/projects/0", 400, "invalid_request"],
    ["/v1/projects/-1", 400, "invalid_request"],
    ["/v1/projects/1e3", 400, "invalid_request"],
    ["/v1/projects/99999999999999999999", 400, "invalid_request"],
    ["/v1/projects/9999999999999999", 400, "invalid_request"],
    ["/v1/projects/%F0", 400, "invalid_request"],
    ["/v1/projects?page_size=0", 400, "invalid_request"],
    ["/v1/projects?page_size=201", 400, "invalid_request"],
    ["/v1/projects?page_size=x", 400, "invalid_request"],
    ["/v1/projects?page_size=1&page_size=2", 400, "invalid_request"],
    ["/v1/projects?owner=0x1", 400, "invalid_request"],
    ["/v1/projects?owner_address=0x1", 400, "invalid_request"],
    ["/v1/projects?cursor=AAAA", 400, "invalid_request"],
    ["/v1/projects/999999/collections", 404, "not_found"],
    ["/v1/projects/999999/api-keys", 404, "not_found"],
    ["/v1/collections/0x12", 400, "invalid_request"],
    [`/v1/collections/0x${"e".repeat(40)}`, 404, "not_found"],
    [`/v1/collections/0x${"e".repeat(40)}/tokens/1`, 404, "not_found"],
    [`/v1/collections/0x${"e".repeat(40)}/tokens/01`, 400, "invalid_request"],
  ])("that cannot be found at %s are answered with %i", async (path, status, code) => {
    expect(await registry.call("GET", path)).toMatchObject({ status, body: { code } });
  });

  it("of one list are not read with the cursor of another", async () => {
    const owner = newAddress();
    await registry.newProject(owner);
    const { body } = await registry.call("GET", `/v1/projects?owner_address=${owner}`);
    expect((await registry.call("GET", `/v1/projects?owner_address=${owner}&cursor=${body.cursor}`)).status).toBe(200);
    expect((await registry.call("GET", `/v1/projects?cursor=${body.cursor}`)).status).toBe(400);
  });

  it("are refused with every mistake of the body", async () => {
    const { status, body } = await registry.call("POST", "/v1/projects", { name: "", owner: "x" });
    expect(status).toBe(400);
    expect(body).toMatchObject({ code: "invalid_request", message: expect.any(String) });
    expect((body.details as { field: string }[]).map(({ field }) => field)).toEqual(["name", "owner_address", "owner"]);
  });
});

describe("collections", () => {
  it("have the documented defaults, and their ceilings can be set and taken back", async () => {
    const projectId = await registry.newProject();
    const collection_address = newAddress();
    const path = `/v1/projects/${projectId}/collections`;
    const created = await registry.call("POST", path, { collection_address, metadata_api_url: `${metadataApiUrl}/` });
    const collection = {
      collection_address,
      project_id: projectId,
      metadata_api_url: metadataApiUrl,
      token_policy: "registered",
      max_concurrency: null,
      max_requests_per_second: null,
    };
    expect(created).toMatchObject({ status: 201, body: collection });
    const one = `/v1/collections/${collection_address}`;
    const ceilings = { max_concurrency: 4, max_requests_per_second: 50 };
    expect((await registry.call("PATCH", one, ceilings)).body).toEqual({ ...created.body, ...ceilings });
    expect((await registry.call("PATCH", one, { max_concurrency: null })).body).toMatchObject({
      ...ceilings,
      max_concurrency: null,
    });
    expect((await registry.call("GET", one)).body).toMatchObject({ ...ceilings, max_concurrency: null });
  });

  it("may be registered again with the same settings, by their project, in any spelling", async () => {
    const projectId = await registry.newProject();
    const body = { collection_address: `0x${"AbCd".repeat(10)}`, metadata_api_url: metadataApiUrl };
    const first = await registry.call("POST", `/v1/projects/${projectId}/collections`, body);
    const again = { collection_address: body.collection_address.toLowerCase(), metadata_api_url: `${metadataApiUrl}/` };
    expect([first.status, await registry.call("POST", `/v1/projects/${projectId}/collections`, again)]).toMatchObject([
      201,
      { status: 200, body: first.body },
    ]);
    const other = { ...body, token_policy: "open" };
    expect(await registry.call("POST", `/v1/projects/${projectId}/collections`, other)).toMatchObject({
      status: 409,
      body: { code: "conflict" },
    });
    expect((await registry.call("GET", `/v1/collections/${body.collection_address}`)).body).toEqual(first.body);
  });

  it("belong to one project, whoever is faster", async () => {
    const projects = [await registry.newProject(), await registry.newProject()];
    const collection_address = newAddress();
    const replies = await Promise.all(
      projects.map((id) =>
        registry.call("POST", `/v1/projects/${id}/collections`, { collection_address, metadata_api_url: metadataApiUrl }),
      ),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([201, 409]);
    const lists = await Promise.all(projects.map((id) => registry.readAll(`/v1/projects/${id}/collections`, 50)));
    const owner = (await registry.call("GET", `/v1/collections/${collection_address}`)).body.project_id;
    expect(lists.map((list) => list.length)).toEqual(projects.map((id) => (id === owner ? 1 : 0)));
  });

  it("that were cut off half-way are in no list, and are complete when they are registered again", async () => {
    const projectId = await registry.newProject();
    const path = `/v1/projects/${projectId}/collections`;
    const [before, cutOff, after] = [
      await registry.newCollection(projectId),
      newAddress(),
      await registry.newCollection(projectId),
    ];
    const query = "INSERT INTO collections_by_project (project_id, collection_address) VALUES (?, ?)";
    await setUp.cassandra.write(query, [projectId, cutOff]);
    const addresses = async () => (await registry.readAll(path, 1)).map((one) => one.collection_address);
    expect(await addresses()).toEqual([before, after].sort());
    expect((await registry.call("POST", path, { collection_address: cutOff, metadata_api_url: metadataApiUrl })).status).toBe(
      201,
    );
    expect(await addresses()).toEqual([before, cutOff, after].sort());
  });

  it.each([
    ["loopback", "http://127.0.0.1/", "address"],
    ["the cloud's metadata service", "http://169.254.169.254/latest", "address"],
    ["a file", "file:///etc/passwd", "scheme"],
    ["a password", "https://user:pass@example.com", "credentials"],
    ["a port that is not allowed", "https://example.com:9042", "port"],
  ])("cannot point the fetcher at %s, neither at first nor later", async (_what, url, rule) => {
    const projectId = await registry.newProject();
    const first = await registry.call("POST", `/v1/projects/${projectId}/collections`, {
      collection_address: newAddress(),
      metadata_api_url: url,
    });
    const later = await registry.call("PATCH", `/v1/collections/${await registry.newCollection(projectId)}`, {
      metadata_api_url: url,
    });
    for (const { status, body } of [first, later]) {
      expect(status).toBe(400);
      expect(body.details).toEqual([{ field: "metadata_api_url", rule, message: expect.any(String) }]);
    }
  });

  it("of a project that does not exist are not registered", async () => {
    const collection_address = newAddress();
    const body = { collection_address, metadata_api_url: metadataApiUrl };
    expect((await registry.call("POST", "/v1/projects/999999/collections", body)).status).toBe(404);
    expect((await registry.call("GET", `/v1/collections/${collection_address}`)).status).toBe(404);
  });
});
