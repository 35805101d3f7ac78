import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWallet } from "../support/wallet.ts";
import { endpoint, type Ingress, IngressStage, ownerOf, type StageProject } from "./ingress-stage.ts";
import { ServedDocument } from "./openapi-answers.ts";

let stage: IngressStage;
let ingress: Ingress;
let document: ServedDocument;
let project: StageProject;
let refreshId: string;

beforeAll(async () => {
  stage = await IngressStage.open("ingress-openapi");
  ingress = await stage.ingress();
  document = await ServedDocument.fetch(ingress.url);
  project = await stage.createProject();
  refreshId = await stage.storeRefresh(project, Date.now() * 1000);
  await stage.storeProgress(refreshId, { succeeded: 1, failed: 2, completedAt: Date.now() * 1000 });
  const attempts = [{ at: 1, status: null, duration_ms: 3_000, body_bytes: 0, cause: "timeout" }];
  await stage.storeError(refreshId, { createdAt: 2, ordinal: 0, status: 404, body: "gone", attempts });
  await stage.storeError(refreshId, { createdAt: 1, ordinal: 1 });
});
afterAll(() => stage?.close());

interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly owner?: { readonly wallet: StageProject["wallet"] };
}

/** Makes the call, holds its answer against the document, and gives the status back. */
async function call({ method = "GET", path = "", body, headers = {}, owner = project }: Call, at = ingress): Promise<number> {
  const answer = await ownerOf(at, owner).send<unknown>(method, endpoint + path, {
    ...(body === undefined ? {} : { body }),
    headers,
  });
  document.check(method, endpoint + path, answer);
  return answer.status;
}

const asked = () => ({ collection_address: project.collection, token_ids: ["1"] });
const post = (call: Call = {}): Call => ({ method: "POST", body: asked(), ...call });

describe("an answer is as the served document says", () => {
  it.each<[string, () => Call, number]>([
    ["an accepted refresh", () => post(), 202],
    ["a body with faults", () => post({ body: { token_ids: [1, "x", "01"], more: 1 } }), 400],
    ["a misspelt query", () => post({ path: "?page=1" }), 400],
    ["a wrong signature", () => post({ headers: { "x-svc-eth-signature": "0x" } }), 401],
    ["an unknown API key", () => post({ headers: { "x-api-key": "amr_x" } }), 401],
    ["another owner's collection", () => post({ owner: { wallet: createWallet() } }), 403],
    ["an unknown collection", () => post({ body: { ...asked(), collection_address: `0x${"0".repeat(40)}` } }), 404],
    ["a long body", () => post({ body: "x".repeat(140_000) }), 413],
    ["a body of another type", () => post({ headers: { "content-type": "text/plain" } }), 415],
    ["the list", () => ({}), 200],
    ["a page of it", () => ({ path: `?page_size=1&collection_address=${project.collection}` }), 200],
    ["the list of an owner of nothing", () => ({ owner: { wallet: createWallet() } }), 200],
    ["a page of no size", () => ({ path: "?page_size=0" }), 400],
    ["the list for nobody", () => ({ headers: { "x-svc-eth-timestamp": "1" } }), 401],
    [
      "the list of another owner's collection",
      () => ({ path: `?collection_address=${project.collection}`, owner: { wallet: createWallet() } }),
      403,
    ],
    ["the list of an unknown collection", () => ({ path: `?collection_address=0x${"0".repeat(40)}` }), 404],
    ["a refresh", () => ({ path: `/${refreshId}` }), 200],
    ["a refresh by something else than its id", () => ({ path: "/1" }), 400],
    ["a refresh for nobody", () => ({ path: `/${refreshId}`, headers: { "x-svc-eth-address": "0x" } }), 401],
    ["an unknown refresh", () => ({ path: `/${uuidv7()}` }), 404],
    ["the errors", () => ({ path: `/${refreshId}/errors` }), 200],
    ["the errors behind no cursor", () => ({ path: `/${refreshId}/errors?cursor=x` }), 400],
    ["the errors for nobody", () => ({ path: `/${refreshId}/errors`, headers: { "x-svc-eth-address": "0x" } }), 401],
    ["the errors of an unknown refresh", () => ({ path: `/${uuidv7()}/errors` }), 404],
  ])("%s", async (_name, build, status) => {
    expect(await call(build())).toBe(status);
  });

  const paths = () => ["", `/${refreshId}`, `/${refreshId}/errors`];

  it("for the API key of another project", async () => {
    const { apiKey } = await stage.createApiKey((await stage.createProject()).projectId, 100);
    for (const path of paths()) expect(await call({ path, headers: { "x-api-key": apiKey } })).toBe(403);
  });

  it("for another request under the same Idempotency-Key", async () => {
    const headers = { "idempotency-key": "reused" };
    expect(await call(post({ headers }))).toBe(202);
    expect(await call(post({ headers, body: { ...asked(), token_ids: ["2"] } }))).toBe(422);
  });

  it("for too many refreshes in the hour, and for too many requests in a second", async () => {
    const small = await stage.createProject({ refreshesPerHour: 1 });
    const body = { collection_address: small.collection, token_ids: ["1"] };
    const statuses = [await call(post({ owner: small, body })), await call(post({ owner: small, body }))];
    expect(statuses).toEqual([202, 429]);
    const strict = await stage.ingress({ REQUESTS_PER_SECOND_PER_IP: "1", REDIS_URL: "redis://127.0.0.1:1" });
    for (const path of paths()) {
      const both = await Promise.all([call({ path }, strict), call({ path }, strict)]);
      expect(both).toContain(429);
    }
  });

  it("while Cassandra has lost its tables; nothing else is promised than was seen", async () => {
    await stage.cassandra.write("DROP TABLE projects", []);
    const calls = [post(), ...paths().map((path): Call => ({ path }))];
    for (const each of calls) expect(await call(each)).toBe(503);
    expect(document.unseen()).toEqual([]);
  });
});

describe("the check itself", () => {
  const headers = new Headers({ "content-type": "application/json; charset=utf-8" });
  const receipt = { refresh_id: "01a1fc5e-77a1-7187-b0e9-0460829f6814" };

  it.each<[string, number, object]>([
    ["a status that is not promised", 418, receipt],
    ["a header that is missing", 202, receipt],
    ["a field that is missing", 400, { code: "invalid_request" }],
    ["a field too much", 400, { code: "invalid_request", message: "", extra: 1 }],
    ["a code that is not listed", 400, { code: "unheard_of", message: "" }],
    ["a detail that is incomplete", 400, { code: "invalid_request", message: "", details: [{ field: "x", rule: "y" }] }],
  ])("finds %s", (_name, status, body) => {
    expect(() => document.check("POST", endpoint, { status, headers, body })).toThrow();
  });
});
