import { afterAll, beforeAll, expect, it } from "vitest";
import { ServedDocument } from "./openapi-answers.ts";
import { type Method, metadataApiUrl, newAddress, type RegistryService, setUpRegistry } from "./registry-service.ts";

let setUp: Awaited<ReturnType<typeof setUpRegistry>>;
let registry: RegistryService;
let document: ServedDocument;

beforeAll(async () => {
  setUp = await setUpRegistry();
  registry = setUp.registry;
  document = await ServedDocument.fetch(registry.url);
});

afterAll(() => setUp.close());

/** Makes the call, holds its answer against the document, and gives the answer back. */
async function call(method: Method, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await registry.call(method, path, body, headers);
  document.check(method, path, answer.status === 204 ? { ...answer, body: undefined } : answer);
  return answer;
}

const statusOf = async (...args: Parameters<typeof call>) => (await call(...args)).status;
const missing = { project: "/v1/projects/999999", collection: `/v1/collections/0x${"e".repeat(40)}` };

it("answers as the served document says, and the document promises nothing else", async () => {
  const project = await call("POST", "/v1/projects", { name: "Game", owner_address: newAddress() });
  const ofProject = `/v1/projects/${project.body.project_id}`;
  const collection = { collection_address: newAddress(), metadata_api_url: metadataApiUrl };
  const ofCollection = `/v1/collections/${collection.collection_address}`;
  const key = await call("POST", `${ofProject}/api-keys`, { name: "k", requests_per_second: 1 });
  const ofKey = `${ofProject}/api-keys/${key.body.key_id}`;
  const tokens = { token_ids: ["1", "2"] };

  const expected: [number, Method, string, unknown?][] = [
    [201, "POST", `${ofProject}/collections`, collection],
    [200, "POST", `${ofProject}/collections`, collection],
    [409, "POST", `${ofProject}/collections`, { ...collection, token_policy: "open" }],
    [200, "POST", `${ofCollection}/tokens`, tokens],
    [200, "GET", "/v1/projects?page_size=1"],
    [200, "GET", ofProject],
    [200, "PATCH", ofProject, { refreshes_per_hour: 3 }],
    [200, "GET", `${ofProject}/collections`],
    [200, "GET", ofCollection],
    [200, "PATCH", ofCollection, { max_concurrency: 2 }],
    [200, "GET", `${ofCollection}/tokens/1`],
    [200, "GET", `${ofProject}/api-keys`],
    [200, "GET", ofKey],
    [200, "PATCH", ofKey, { name: "other" }],
    [204, "DELETE", ofKey],
    [200, "GET", ofKey],
    [409, "PATCH", ofKey, { name: "late" }],
    [404, "POST", `${missing.project}/collections`, collection],
    [404, "POST", `${missing.collection}/tokens`, tokens],
    [404, "POST", `${missing.project}/api-keys`, { name: "k", requests_per_second: 1 }],
    [404, "GET", missing.project],
    [404, "PATCH", missing.project, { name: "x" }],
    [404, "GET", `${missing.project}/collections`],
    [404, "GET", missing.collection],
    [404, "PATCH", missing.collection, { max_concurrency: 2 }],
    [404, "GET", `${ofCollection}/tokens/3`],
    [404, "GET", `${missing.project}/api-keys`],
    [404, "GET", `${ofProject}/api-keys/none`],
    [404, "PATCH", `${ofProject}/api-keys/none`, { name: "x" }],
    [404, "DELETE", `${ofProject}/api-keys/none`],
    [400, "GET", "/v1/projects?page_size=0"],
    [400, "GET", "/v1/projects/x"],
    [400, "GET", `${ofProject}/collections?cursor=x`],
    [400, "GET", "/v1/collections/x"],
    [400, "GET", `${ofCollection}/tokens/01`],
    [400, "GET", `${ofProject}/api-keys?more=1`],
    [400, "GET", "/v1/projects/x/api-keys/none"],
    [400, "DELETE", "/v1/projects/x/api-keys/none"],
  ];
  for (const [status, method, path, body] of expected)
    expect([method, path, await statusOf(method, path, body)]).toEqual([method, path, status]);

  const withBody: [Method, string][] = [
    ["POST", "/v1/projects"],
    ["PATCH", ofProject],
    ["POST", `${ofProject}/collections`],
    ["PATCH", ofCollection],
    ["POST", `${ofCollection}/tokens`],
    ["POST", `${ofProject}/api-keys`],
    ["PATCH", ofKey],
  ];
  for (const [method, path] of withBody) {
    expect(await statusOf(method, path, { unheard_of: 1 })).toBe(400);
    expect(await statusOf(method, path, "x".repeat(1_100_000))).toBe(413);
    expect(await statusOf(method, path, {}, { "content-type": "text/plain" })).toBe(415);
  }

  const everyOperation = [...new Set(expected.map(([, method, path]) => `${method} ${path}`)), "POST /v1/projects"];
  for (const operation of everyOperation) {
    const [method, path] = operation.split(" ") as [Method, string];
    expect(await statusOf(method, path, method === "GET" || method === "DELETE" ? undefined : {}, { authorization: "" })).toBe(
      401,
    );
  }

  for (const table of ["projects", "collections", "api_keys_by_project", "tokens"]) {
    await setUp.cassandra.write(`DROP TABLE ${table}`, []);
  }
  const project503 = { name: "Game", owner_address: newAddress() };
  const lost: [Method, string, unknown?][] = [
    ["POST", "/v1/projects", project503],
    ["GET", "/v1/projects"],
    ["GET", ofProject],
    ["PATCH", ofProject, { name: "x" }],
    ["POST", `${ofProject}/collections`, collection],
    ["GET", `${ofProject}/collections`],
    ["GET", ofCollection],
    ["PATCH", ofCollection, { max_concurrency: 2 }],
    ["POST", `${ofCollection}/tokens`, tokens],
    ["GET", `${ofCollection}/tokens/1`],
    ["POST", `${ofProject}/api-keys`, { name: "k", requests_per_second: 1 }],
    ["GET", `${ofProject}/api-keys`],
    ["GET", ofKey],
    ["PATCH", ofKey, { name: "x" }],
    ["DELETE", ofKey],
  ];
  for (const [method, path, body] of lost)
    expect([method, path, await statusOf(method, path, body)]).toEqual([method, path, 503]);
  expect(document.unseen()).toEqual([]);
});
