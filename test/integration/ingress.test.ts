import fc from "fast-check";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRefreshRows } from "../../services/common/cassandra/refresh-rows.ts";
import { refusalCodes } from "../../services/common/http/answer.ts";
import { refusalSchema } from "../../services/common/http/openapi.ts";
import { receiptSchema } from "../../services/ingress/core/views.ts";
import { endpoint, type Ingress, IngressStage, limitsIn, ownerOf } from "./ingress-stage.ts";

let stage: IngressStage;
let ingress: Ingress;

beforeAll(async () => {
  stage = await IngressStage.open("ingress");
  ingress = await stage.ingress();
});
afterAll(() => stage?.close());

describe("a request", () => {
  it("is answered with a receipt, published as it was asked, and found at once", async () => {
    const project = await stage.createProject();
    const owner = ownerOf(ingress, project);
    const reply = await owner.requestRefresh(`0x${project.collection.slice(2).toUpperCase()}`, ["7", "0", "12"]);
    expect(reply.status).toBe(202);
    expect(receiptSchema.parse(reply.body)).toEqual(reply.body);
    expect(limitsIn(reply.headers)).toEqual({ limit: 20, remaining: 19, reset: stage.clock.nowMs() / 1000 + 1_800 });
    const [record, ...more] = await stage.recordsOf(project.projectId);
    const requestedAt = stage.clock.nowMs() * 1000;
    expect([record?.key, more]).toEqual([reply.body.refresh_id, []]);
    expect(record?.value).toEqual({
      refresh_id: reply.body.refresh_id,
      project_id: project.projectId,
      collection_address: project.collection,
      token_ids: ["7", "0", "12"],
      requested_at: requestedAt,
      deadline: requestedAt + 48 * 3_600_000_000,
      metadata_api_url: "http://127.0.0.1:1/meta",
      token_policy: "open",
      max_concurrency: 7,
      max_requests_per_second: null,
    });
    const view = await owner.getRefresh(reply.body.refresh_id);
    expect(view).toEqual({
      refresh_id: reply.body.refresh_id,
      status: "queued",
      collection_address: project.collection,
      started_at: `${new Date(requestedAt / 1000).toISOString().slice(0, -1)}000Z`,
      completed_at: null,
      summary: { succeeded: 0, failed: 0, pending: 3 },
    });
    const { summary: _summary, ...item } = view;
    expect((await owner.send<{ result: unknown[] }>("GET", endpoint)).body.result).toEqual([item]);
  });

  it("takes a thousand tokens of 78 digits", async () => {
    const project = await stage.createProject();
    const tokenIds = Array.from({ length: 1_000 }, (_, index) => (10n ** 77n + BigInt(index)).toString());
    await ownerOf(ingress, project).requestRefresh(project.collection, tokenIds);
    const [record] = await stage.recordsOf(project.projectId);
    expect(record?.value.token_ids).toEqual(tokenIds);
  });

  it("writes the same rows that the splitter will write from its record", async () => {
    const project = await stage.createProject();
    const { body } = await ownerOf(ingress, project).requestRefresh(project.collection, ["1", "2"]);
    const tables = ["refreshes", "refresh_tokens", "refreshes_by_project", "refreshes_by_collection"];
    const rowsOf = async (table: string) =>
      (await stage.cassandra.read(`SELECT * FROM ${table}`, [])).filter((row) => row.refresh_id === body.refresh_id);
    const written = await Promise.all(tables.map(rowsOf));
    const [record] = await stage.recordsOf(project.projectId);
    if (record === undefined) throw new Error("no record");
    await writeRefreshRows(stage.cassandra, record.value, { retentionSeconds: 60, nowMs: Date.now() });
    expect(await Promise.all(tables.map(rowsOf))).toEqual(written);
    expect(written.map((rows) => rows.length)).toEqual([1, 1, 1, 1]);
  });
});

describe("a refused request", () => {
  it("leaves nothing behind: no record, no row, no claim, no place taken", async () => {
    const project = await stage.createProject();
    const other = await stage.createProject();
    const owner = ownerOf(ingress, project);
    const good = { collection_address: project.collection, token_ids: ["1"] };
    const post = (body: unknown, headers: Record<string, string> = {}, query = "") =>
      owner.send<{ code: string }>("POST", endpoint + query, { body, headers: { "idempotency-key": uuidv7(), ...headers } });
    const old = await project.wallet.headers(1_700_000_000);
    const refused = [
      [await post({ ...good, token_ids: [] }), 400, "invalid_request"],
      [await post({ ...good, token_ids: ["1", "1"] }), 400, "invalid_request"],
      [await post({ ...good, extra: 1 }), 400, "invalid_request"],
      [await post([]), 400, "invalid_request"],
      [await post(good, {}, "?page_size=5"), 400, "invalid_request"],
      [await post(good, { "idempotency-key": "no blanks" }), 400, "invalid_request"],
      [await post(good, { "idempotency-key": "k".repeat(256) }), 400, "invalid_request"],
      [await post(good, old), 401, "invalid_signature"],
      [await post(good, { "x-svc-eth-signature": "0x" }), 401, "invalid_signature"],
      [await post(good, { "x-api-key": "amr_nothing" }), 401, "invalid_api_key"],
      [await post({ ...good, collection_address: other.collection }), 403, "not_the_owner"],
      [await post({ ...good, collection_address: `0x${"0".repeat(40)}` }), 404, "not_found"],
      [await post("x".repeat(140_000)), 413, "payload_too_large"],
      [await post(good, { "content-type": "text/plain" }), 415, "unsupported_media_type"],
    ] as const;
    for (const [reply, status, code] of refused) {
      expect([reply.status, reply.body.code]).toEqual([status, code]);
      expect(refusalSchema(refusalCodes).parse(reply.body)).toEqual(reply.body);
      expect(reply.headers.get("x-svc-refreshes-limit"), "before the limit nothing is told of it").toBeNull();
    }
    const accepted = await owner.requestRefresh(project.collection, ["1"]);
    expect(limitsIn(accepted.headers).remaining).toBe(19);
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([accepted.body.refresh_id]);
    expect(await stage.recordsOf(other.projectId)).toEqual([]);
    const list = await stage.cassandra.read("SELECT project_id FROM refreshes_by_project", []);
    expect(list.filter(({ project_id }) => Number(project_id) === project.projectId)).toHaveLength(1);
    const claims = await stage.cassandra.read("SELECT project_id FROM idempotency_keys", []);
    expect(claims.filter(({ project_id }) => Number(project_id) === project.projectId)).toEqual([]);
  });

  it("is told of its first fault in the order of the checks, the cheap ones first", async () => {
    const project = await stage.createProject({ refreshesPerHour: 1 });
    const other = await stage.createProject();
    const owner = ownerOf(ingress, project);
    const spent = { "idempotency-key": "spent" };
    await owner.send("POST", endpoint, { body: { collection_address: project.collection, token_ids: ["1"] }, headers: spent });
    // Each step mends the fault that the one before was told of.
    const faults: [object, Record<string, string>, string][] = [
      [
        { token_ids: ["x".repeat(140_000)] },
        { "x-api-key": "amr_x", "x-svc-eth-signature": "0x", "x-svc-eth-timestamp": "1", "content-type": "text/plain" },
        "401 invalid_api_key",
      ],
      [
        { token_ids: ["x".repeat(140_000)] },
        { "x-svc-eth-signature": "0x", "x-svc-eth-timestamp": "1", "content-type": "text/plain" },
        "401 invalid_signature: x-svc-eth-signature must",
      ],
      [
        { token_ids: ["x".repeat(140_000)] },
        { "x-svc-eth-timestamp": "1", "content-type": "text/plain" },
        "401 invalid_signature: x-svc-eth-timestamp must",
      ],
      [
        { token_ids: ["x".repeat(140_000)] },
        { "x-svc-eth-timestamp": String(Math.floor(Date.now() / 1000) - 10), "content-type": "text/plain" },
        "401 invalid_signature: x-svc-eth-signature is not",
      ],
      [{ token_ids: ["x".repeat(140_000)] }, { "content-type": "text/plain" }, "415"],
      [{ token_ids: ["x".repeat(140_000)] }, {}, "413"],
      [{ collection_address: other.collection, token_ids: ["x"] }, spent, "400"],
      [{ collection_address: other.collection, token_ids: ["2"] }, spent, "403"],
      [{ collection_address: project.collection, token_ids: ["2"] }, spent, "422"],
      [{ collection_address: project.collection, token_ids: ["2"] }, {}, "429 refresh_limit_exceeded"],
    ];
    for (const [body, headers, expected] of faults) {
      const reply = await owner.send<{ code: string; message: string }>("POST", endpoint, { body, headers });
      expect(`${reply.status} ${reply.body.code}: ${reply.body.message}`).toContain(expected);
    }
  });
});

describe("whatever is sent", () => {
  const anyBody = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.string(),
    fc.record({ collection_address: fc.anything(), token_ids: fc.anything() }).map((body) => JSON.stringify(body) ?? ""),
    fc
      .record({ collection_address: fc.constant(`0x${"0".repeat(40)}`), token_ids: fc.array(fc.string()) })
      .map((body) => JSON.stringify(body)),
  );
  const headerValue = fc.string({ unit: fc.constantFrom(..."0x1bAf,;=\"'<> \t") });

  it("is answered, and never as a fault of the service", async () => {
    const project = await stage.createProject();
    const signed = await project.wallet.headers();
    const asked = fc.record({
      method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS"),
      path: fc.oneof(
        fc.constant(endpoint),
        fc.webPath().map((path) => endpoint + path),
        fc.webPath(),
      ),
      query: fc.webQueryParameters(),
      body: anyBody,
      headers: fc.oneof(
        fc.constant({}),
        fc.dictionary(fc.constantFrom(...Object.keys(signed), "x-api-key", "idempotency-key", "content-type"), headerValue),
      ),
    });
    await fc.assert(
      fc.asyncProperty(asked, async ({ method, path, query, body, headers }) => {
        const url = `${ingress.url}${path.startsWith("/") ? "" : "/"}${path}?${query}`;
        const withBody = method === "GET" ? {} : { body };
        const response = await fetch(url, {
          method,
          ...withBody,
          headers: { "content-type": "application/json", ...signed, ...headers },
        });
        const text = await response.text();
        expect(response.status, `${method} ${url} ${text}`).toBeLessThan(500);
        if (response.status >= 400) expect(refusalSchema(refusalCodes).safeParse(JSON.parse(text)).success, text).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(await stage.recordsOf(project.projectId)).toEqual([]);
  });
});

describe("a stop", () => {
  it("ends what was taken in: what was answered 202 is in Kafka, and what came later was not taken", async () => {
    const stopping = await stage.ingress();
    const project = await stage.createProject({ refreshesPerHour: 1_000 });
    const owner = ownerOf(stopping, project);
    const body = { collection_address: project.collection, token_ids: ["1"] };
    const first = owner.send("POST", endpoint, { body });
    const under = Array.from({ length: 20 }, () =>
      owner.send<{ refresh_id: string }>("POST", endpoint, { body }).catch(() => undefined),
    );
    await first;
    await stopping.stop();
    const replies = (await Promise.all(under)).filter((reply) => reply !== undefined);
    await expect(owner.send("POST", endpoint, { body })).rejects.toThrow();
    const published = new Set((await stage.recordsOf(project.projectId)).map(({ key }) => key));
    for (const reply of replies) {
      expect(reply.status).toBe(202);
      expect(published).toContain(reply.body.refresh_id);
    }
    expect(published.size).toBe(replies.length + 1);
  });
});

describe("what is logged", () => {
  it("names the request, its project and its refresh, and holds no secret and nothing that was asked", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 100);
    const owner = ownerOf(ingress, project, apiKey);
    const headers = await project.wallet.headers();
    const body = { collection_address: project.collection, token_ids: ["987654321987654321"] };
    const reply = await owner.send<{ refresh_id: string }>("POST", endpoint, { body, headers });
    await owner.send("GET", `${endpoint}?collection_address=${project.collection}&page_size=199`, { headers });
    const lines = ingress.context.logs.filter(
      ({ event, projectId }) => event === "request.answered" && projectId === project.projectId,
    );
    expect(lines).toEqual([
      expect.objectContaining({
        method: "POST",
        route: "POST /v1/metadata-refreshes",
        status: 202,
        requestId: reply.headers.get("x-request-id"),
        refreshId: reply.body.refresh_id,
        ms: expect.any(Number),
      }),
    ]);
    const everything = JSON.stringify(ingress.context.logs);
    for (const secret of [apiKey, headers["x-svc-eth-signature"], "987654321987654321", "page_size=199"]) {
      expect(everything).not.toContain(secret);
    }
  });
});
