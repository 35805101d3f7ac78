import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { refusalCodes } from "../../services/common/http/answer.ts";
import { refusalSchema } from "../../services/common/http/openapi.ts";
import { pageSchema } from "../../services/common/http/paging.ts";
import { errorItemSchema, refreshItemSchema, refreshSchema } from "../../services/ingress/core/views.ts";
import { openApiDocument } from "../../services/ingress/routes/openapi.ts";
import type { RefreshErrorView, RefreshView } from "../support/clients.ts";
import { createWallet } from "../support/wallet.ts";
import { endpoint, type Ingress, IngressStage, ownerOf, type StageProject } from "./ingress-stage.ts";

let stage: IngressStage;
let ingress: Ingress;

beforeAll(async () => {
  stage = await IngressStage.open("ingress-queries");
  ingress = await stage.ingress();
});
afterAll(() => stage?.close());

interface Page<T> {
  readonly result: T[];
  readonly cursor: string;
  readonly remaining: number;
}

describe("a refresh", () => {
  it.each([
    ["queued", { succeeded: 0, failed: 0, completedAt: 0 }, 3],
    ["in_progress", { succeeded: 1, failed: 0, completedAt: 0 }, 2],
    ["completed", { succeeded: 1, failed: 2, completedAt: 1_795_237_200_123_456 }, 0],
  ])("is %s when its progress says so, alone and in the list", async (status, counts, pending) => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    await stage.storeProgress(refreshId, counts);
    const owner = ownerOf(ingress, project);
    const view = await owner.getRefresh(refreshId);
    const completed_at = counts.completedAt === 0 ? null : "2026-11-21T05:00:00.123456Z";
    const { succeeded, failed } = counts;
    expect(view).toMatchObject({ status, completed_at, summary: { succeeded, failed, pending } });
    expect(refreshSchema.parse(view)).toEqual(view);
    const list = await owner.send<Page<RefreshView>>("GET", `${endpoint}?collection_address=${project.collection}`);
    expect(list.body.result).toMatchObject([{ refresh_id: refreshId, status, completed_at }]);
  });

  it("H12 of another owner is answered as one that does not exist", async () => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    const stranger = ownerOf(ingress, await stage.createProject());
    for (const tail of ["", "/errors"]) {
      const [theirs, nobodys] = await Promise.all([
        stranger.send("GET", `${endpoint}/${refreshId}${tail}`),
        stranger.send("GET", `${endpoint}/${uuidv7()}${tail}`),
      ]);
      expect(theirs.status).toBe(404);
      expect([theirs.status, theirs.body]).toEqual([nobodys.status, nobodys.body]);
      expect([...theirs.headers.keys()]).toEqual([...nobodys.headers.keys()]);
    }
  });

  it("H11 goes with its project to a new owner, at once and wholly", async () => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    const seller = ownerOf(ingress, project);
    expect((await seller.getRefresh(refreshId)).refresh_id).toBe(refreshId);
    const buyer = ownerOf(ingress, { wallet: createWallet() });
    await stage.changeOwner(project, buyer.wallet);
    expect((await buyer.getRefresh(refreshId)).refresh_id).toBe(refreshId);
    expect((await seller.send("GET", `${endpoint}/${refreshId}`)).status).toBe(404);
    expect((await seller.send<Page<unknown>>("GET", endpoint)).body.result).toEqual([]);
    expect((await buyer.send<Page<unknown>>("GET", endpoint)).body.result).toHaveLength(1);
    const body = { collection_address: project.collection, token_ids: ["1"] };
    expect((await seller.send("POST", endpoint, { body })).status).toBe(403);
    expect((await buyer.send("POST", endpoint, { body })).status).toBe(202);
  });

  it.each([
    ["not-a-uuid", 400],
    ["01A1FC5E-77A1-7187-B0E9-0460829F6814", 404],
    ["01a1fc5e77a17187b0e90460829f6814", 400],
    ["%00", 400],
    ["%zz", 400],
  ])("with the id %s is %i", async (id, status) => {
    expect((await ownerOf(ingress, await stage.createProject()).send("GET", `${endpoint}/${id}`)).status).toBe(status);
  });

  it("is asked for with HEAD as well", async () => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    const reply = await ownerOf(ingress, project).send("HEAD", `${endpoint}/${refreshId}`);
    expect([reply.status, reply.body, Number(reply.headers.get("content-length")) > 100]).toEqual([200, undefined, true]);
  });
});

/** Every page until there is no more; `between` runs before each further one. */
async function pagesOf<T>(
  owner: ReturnType<typeof ownerOf>,
  path: string,
  between: (page: number) => Promise<unknown> = async () => undefined,
): Promise<T[][]> {
  const pages: T[][] = [];
  let cursor = "";
  for (;;) {
    const { status, body } = await owner.send<Page<T>>("GET", `${path}${path.includes("?") ? "&" : "?"}${cursor}`);
    expect(status).toBe(200);
    pages.push(body.result);
    if (body.remaining === 0) return pages;
    await between(pages.length);
    cursor = `cursor=${body.cursor}`;
  }
}

describe("the list of refreshes", () => {
  it("merges the owner's projects over months, newest first, and neither skips nor repeats while refreshes are added", async () => {
    const wallet = createWallet();
    const projects = [await stage.createProject({ wallet }), await stage.createProject({ wallet })];
    const stranger = await stage.createProject();
    const dayMicros = 86_400_000_000;
    const newest = Date.now() * 1000 - 1_000_000;
    const expected: string[] = [];
    for (let age = 0; age < 24; age += 1) {
      const project = projects[age % 2];
      if (project === undefined) throw new Error("no project");
      expected.push(await stage.storeRefresh(project, newest - age * 3 * dayMicros));
      await stage.storeRefresh(stranger, newest - age * 3 * dayMicros);
    }
    const owner = ownerOf(ingress, { wallet });
    const adding = async () => stage.storeRefresh(projects[0] as StageProject, Date.now() * 1000);
    const pages = await pagesOf<RefreshView>(owner, `${endpoint}?page_size=5`, adding);
    expect(pages.flat().map(({ refresh_id }) => refresh_id)).toEqual(expected);
    expect(pages.map((page) => page.length)).toEqual([5, 5, 5, 5, 4]);
  });

  it("orders refreshes of one instant by id, also across a page's end", async () => {
    const project = await stage.createProject();
    const instant = Date.now() * 1000;
    const ids = [];
    for (let count = 0; count < 7; count += 1) ids.push(await stage.storeRefresh(project, instant));
    const pages = await pagesOf<RefreshView>(ownerOf(ingress, project), `${endpoint}?page_size=2`);
    expect(pages.flat().map(({ refresh_id }) => refresh_id)).toEqual(ids.toSorted().reverse());
  });

  it("shows one collection when it is asked for, in any case", async () => {
    const project = await stage.createProject();
    const second = await stage.createCollection(project.projectId);
    const instant = Date.now() * 1000;
    await stage.storeRefresh(project, instant);
    const wanted = [
      await stage.storeRefresh(project, instant + 2, second),
      await stage.storeRefresh(project, instant + 1, second),
    ];
    const path = `${endpoint}?collection_address=0x${second.slice(2).toUpperCase()}&page_size=1`;
    const pages = await pagesOf<RefreshView>(ownerOf(ingress, project), path);
    expect(pages.map((page) => page[0]?.refresh_id)).toEqual(wanted);
    expect(pages.flat().every(({ collection_address }) => collection_address === second)).toBe(true);
  });

  it("has a cursor and tells that nothing remains when it is empty", async () => {
    const owner = ownerOf(ingress, await stage.createProject());
    const { body } = await owner.send<Page<unknown>>("GET", endpoint);
    expect(pageSchema(refreshItemSchema).parse(body)).toEqual(body);
    expect(body).toMatchObject({ result: [], remaining: 0 });
    const again = await owner.send<Page<unknown>>("GET", `${endpoint}?cursor=${body.cursor}`);
    expect(again.body).toEqual(body);
  });

  it("is empty for an address that owns nothing", async () => {
    const reply = await ownerOf(ingress, { wallet: createWallet() }).send<Page<unknown>>("GET", endpoint);
    expect([reply.status, reply.body.result]).toEqual([200, []]);
  });

  it("takes a cursor for the list that gave it alone", async () => {
    const project = await stage.createProject();
    const stranger = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    await stage.storeError(refreshId, { createdAt: 1, ordinal: 1 });
    const owner = ownerOf(ingress, project);
    const filtered = `${endpoint}?collection_address=${project.collection}`;
    const cursorOf = async (path: string) => (await owner.send<Page<unknown>>("GET", path)).body.cursor;
    const [ofAll, ofOne, ofErrors] = [
      await cursorOf(endpoint),
      await cursorOf(filtered),
      await cursorOf(`${endpoint}/${refreshId}/errors`),
    ];
    const status = async (path: string, client = owner) => (await client.send("GET", path)).status;
    expect(await status(`${endpoint}?cursor=${ofAll}`)).toBe(200);
    expect(await status(`${filtered}&cursor=${ofAll}`)).toBe(400);
    expect(await status(`${endpoint}?cursor=${ofOne}`)).toBe(400);
    expect(await status(`${endpoint}?cursor=${ofErrors}`)).toBe(400);
    expect(await status(`${endpoint}/${refreshId}/errors?cursor=${ofAll}`)).toBe(400);
    expect(await status(`${endpoint}?cursor=${ofAll}`, ownerOf(ingress, stranger))).toBe(400);
    expect(await status(`${endpoint}?cursor=${ofAll.slice(0, -2)}`)).toBe(400);
  });

  it.each([
    ["page_size=0", "page_size"],
    ["page_size=201", "page_size"],
    ["page_size=5&page_size=5", "page_size"],
    ["limit=5", "limit"],
    ["collection_address=0x12", "collection_address"],
    ["cursor=", "cursor"],
    ["__proto__[x]=1", "__proto__[x]"],
  ])("refuses ?%s and names what is wrong", async (query, field) => {
    const owner = ownerOf(ingress, await stage.createProject());
    const reply = await owner.send<{ details: { field: string }[] }>("GET", `${endpoint}?${query}`);
    expect([reply.status, reply.body.details.map((problem) => problem.field)]).toEqual([400, [field]]);
    expect(refusalSchema(refusalCodes).parse(reply.body)).toEqual(reply.body);
  });

  it("of a collection of another owner is 403, of an unknown one 404", async () => {
    const owner = ownerOf(ingress, await stage.createProject());
    const { collection } = await stage.createProject();
    expect((await owner.send("GET", `${endpoint}?collection_address=${collection}`)).status).toBe(403);
    expect((await owner.send("GET", `${endpoint}?collection_address=0x${"0".repeat(40)}`)).status).toBe(404);
  });
});

describe("the errors of a refresh", () => {
  it("come newest first, of one instant by ordinal, and neither skip nor repeat while errors are added", async () => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    for (let ordinal = 0; ordinal < 9; ordinal += 1) {
      await stage.storeError(refreshId, { createdAt: 1_000 + Math.floor(ordinal / 3), ordinal });
    }
    const owner = ownerOf(ingress, project);
    const adding = (page: number) => stage.storeError(refreshId, { createdAt: 9_000 + page, ordinal: 100 + page });
    const pages = await pagesOf<RefreshErrorView>(owner, `${endpoint}/${refreshId}/errors?page_size=2`, adding);
    expect(pages.flat().map(({ token_id }) => token_id)).toEqual(["8", "7", "6", "5", "4", "3", "2", "1", "0"]);
  });

  it("have every field, null where there was no response", async () => {
    const project = await stage.createProject();
    const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
    const attempts = [
      { at: 1_767_225_600_000_001, status: 503, duration_ms: 12, body_bytes: 5, cause: "service_unavailable" },
      { at: 1_767_225_602_500_000, status: 404, duration_ms: 7, body_bytes: 15, cause: "unexpected_status" },
    ];
    await stage.storeError(refreshId, { createdAt: 2, ordinal: 0, status: 404, body: "<b>gone</b>\u001b[31m", attempts });
    await stage.storeError(refreshId, { createdAt: 1, ordinal: 1 });
    const { body } = await ownerOf(ingress, project).send<Page<RefreshErrorView>>("GET", `${endpoint}/${refreshId}/errors`);
    expect(pageSchema(errorItemSchema).parse(body)).toEqual(body);
    expect(body.result).toEqual([
      {
        token_id: "0",
        collection_address: `0x${"ab".repeat(20)}`,
        client_token_metadata_url: "http://127.0.0.1:1/0",
        client_response_status_code: 404,
        client_response_body: "<b>gone</b>\u001b[31m",
        error_code: "invalid_response_status_code",
        error_detail: null,
        created_at: "1970-01-01T00:00:00.000002Z",
        attempts: [
          {
            at: "2026-01-01T00:00:00.000001Z",
            status: 503,
            duration_ms: 12,
            bytes: 5,
            cause: "service_unavailable",
            next: "retry",
          },
          {
            at: "2026-01-01T00:00:02.500000Z",
            status: 404,
            duration_ms: 7,
            bytes: 15,
            cause: "unexpected_status",
            next: "final",
          },
        ],
      },
      expect.objectContaining({
        client_response_status_code: null,
        client_response_body: null,
        error_code: "unable_to_retrieve_metadata",
        error_detail: "timeout",
        attempts: [],
      }),
    ]);
  });
});

it("L6 a page that an API sent instead of JSON reaches its owner as a text in JSON, which no browser shows as a page", async () => {
  const page = "<html><script>alert(document.cookie)</script>\u2028</html>";
  const project = await stage.createProject();
  const refreshId = await stage.storeRefresh(project, Date.now() * 1000);
  await stage.storeError(refreshId, { createdAt: 1, ordinal: 0, status: 500, body: page });
  const reply = await ownerOf(ingress, project).send<Page<RefreshErrorView>>("GET", `${endpoint}/${refreshId}/errors`);
  expect(reply.body.result[0]?.client_response_body).toBe(page);
  expect(reply.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(reply.headers.get("x-content-type-options")).toBe("nosniff");
});

describe("the document of the interface", () => {
  it("is served to anybody", async () => {
    const response = await fetch(`${ingress.url}/openapi.json`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument)));
  });
});
