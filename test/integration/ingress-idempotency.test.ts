import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec } from "../../services/common/kafka/contracts.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { IdempotencyClaims } from "../../services/ingress/adapters/idempotency-claims.ts";
import { createDecode } from "../../services/ingress/adapters/publishing.ts";
import type { Draft } from "../../services/ingress/core/acceptance.ts";
import { endpoint, type Ingress, IngressStage, limitsIn, ownerOf, SetClock, type StageProject } from "./ingress-stage.ts";

let stage: IngressStage;
let first: Ingress;
let second: Ingress;
let codec: Codec;

beforeAll(async () => {
  stage = await IngressStage.open("ingress-idempotency");
  [first, second] = await Promise.all([stage.ingress(), stage.ingress()]);
  const { env, topics } = stage.environment;
  codec = await createCodec({ registryUrl: env.SCHEMA_REGISTRY_URL ?? "", uses: [topics.refreshRequested] });
});
afterAll(() => stage?.close());

interface Asking {
  readonly ingress?: Ingress;
  readonly tokenIds?: readonly string[];
  readonly collection?: string;
  readonly headers?: Record<string, string>;
}

function ask(
  project: StageProject,
  key: string,
  { ingress = first, tokenIds = ["1", "2"], collection, headers = {} }: Asking = {},
) {
  return ownerOf(ingress, project).send<{ refresh_id: string; code: string }>("POST", endpoint, {
    body: { collection_address: collection ?? project.collection, token_ids: tokenIds },
    headers: { "idempotency-key": key, ...headers },
  });
}

function draftOf(project: StageProject, requestedMs = stage.clock.nowMs()): Draft {
  const record = {
    refresh_id: uuidv7({ msecs: requestedMs }),
    project_id: project.projectId,
    collection_address: project.collection,
    token_ids: ["1", "2"],
    requested_at: requestedMs * 1000,
    deadline: requestedMs * 1000 + 48 * 3_600_000_000,
    metadata_api_url: "http://127.0.0.1:1/as-it-was-then",
    token_policy: "registered" as const,
    max_concurrency: null,
    max_requests_per_second: null,
  };
  return { record, bytes: codec.encode(stage.environment.topics.refreshRequested.name, record) };
}

/** The claims of one instance. */
function claimsOf(): IdempotencyClaims {
  return new IdempotencyClaims({
    cassandra: stage.cassandra,
    clock: stage.clock,
    logger: createLogger("test", "silent"),
    ttlSeconds: 86_400,
    decode: createDecode(codec, stage.environment.topics.refreshRequested),
  });
}

/** What a process left behind that died after it had claimed the key; `requestedMs` is when. */
async function leaveClaim(project: StageProject, key: string, requestedMs?: number): Promise<Draft> {
  const draft = draftOf(project, requestedMs);
  expect(await claimsOf().claim(key, draft)).toEqual({ state: "pending", draft, resumed: false });
  return draft;
}

describe("a request that is repeated under its key", () => {
  it("is answered with the same receipt, published once and charged once", async () => {
    const project = await stage.createProject();
    const one = await ask(project, "again");
    const two = await ask(project, "again", { ingress: second });
    expect([one.status, two.status]).toEqual([202, 202]);
    expect(two.body).toEqual(one.body);
    expect(limitsIn(two.headers)).toEqual(limitsIn(one.headers));
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([one.body.refresh_id]);
    expect(limitsIn((await ask(project, "other")).headers).remaining).toBe(18);
  });

  it("is one refresh when it is sent ten times at once to two instances", async () => {
    const project = await stage.createProject();
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, index) => ask(project, "at-once", { ingress: index % 2 === 0 ? first : second })),
    );
    const ids = new Set(replies.map(({ status, body }) => `${status} ${body.refresh_id}`));
    expect(ids.size).toBe(1);
    expect([...ids][0]).toMatch(/^202 /);
    const records = await stage.recordsOf(project.projectId);
    expect(new Set(records.map(({ key, bytes }) => key + bytes.toString("hex"))).size).toBe(1);
    expect(limitsIn((await ask(project, "later")).headers).remaining).toBe(18);
  });

  it("is the same request in another spelling", async () => {
    const project = await stage.createProject();
    const one = await ask(project, "spelling");
    const two = await ask(project, "spelling", { collection: `0x${project.collection.slice(2).toUpperCase()}` });
    expect(two.status).toBe(202);
    expect(two.body).toEqual(one.body);
  });

  it.each<[string, (project: StageProject) => Promise<Asking> | Asking]>([
    ["other tokens", () => ({ tokenIds: ["1", "3"] })],
    ["the tokens in another order", () => ({ tokenIds: ["2", "1"] })],
    ["another collection of the project", async ({ projectId }) => ({ collection: await stage.createCollection(projectId) })],
  ])("with %s is refused, and nothing is requested", async (_name, change) => {
    const project = await stage.createProject();
    const one = await ask(project, "changed");
    const two = await ask(project, "changed", await change(project));
    expect([two.status, two.body.code]).toEqual([422, "idempotency_key_reused"]);
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([one.body.refresh_id]);
  });

  it("in another project is another request", async () => {
    const [one, two] = [await stage.createProject(), await stage.createProject()];
    const replies = [await ask(one, "shared"), await ask(two, "shared")];
    expect(replies.map(({ status }) => status)).toEqual([202, 202]);
    expect(replies[0]?.body.refresh_id).not.toBe(replies[1]?.body.refresh_id);
  });

  it("may have any visible characters for its key, up to 255", async () => {
    const project = await stage.createProject();
    const key = `${Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join("")}${"k".repeat(161)}`;
    const replies = [await ask(project, key), await ask(project, key)];
    expect(replies.map(({ status }) => status)).toEqual([202, 202]);
    expect(replies[0]?.body).toEqual(replies[1]?.body);
  });

  it("is a new request when its key is over", async () => {
    const clock = new SetClock(Date.now());
    const ingress = await stage.ingress({}, clock);
    const project = await stage.createProject();
    const at = async () => ({ ingress, headers: await project.wallet.headers(Math.floor(clock.nowMs() / 1000)) });
    const one = await ask(project, "a-day", await at());
    clock.advance(86_399_000);
    expect((await ask(project, "a-day", await at())).body).toEqual(one.body);
    clock.advance(1_000);
    const anew = await ask(project, "a-day", await at());
    expect(anew.status).toBe(202);
    expect(anew.body.refresh_id).not.toBe(one.body.refresh_id);
    expect((await ask(project, "a-day", await at())).body).toEqual(anew.body);
  });
});

describe("a request whose process died", () => {
  it("after the claim is carried out by its repetition: its id, its time, its very bytes", async () => {
    const project = await stage.createProject();
    const left = await leaveClaim(project, "died-early");
    const reply = await ask(project, "died-early");
    expect([reply.status, reply.body.refresh_id]).toEqual([202, left.record.refresh_id]);
    const [record, ...more] = await stage.recordsOf(project.projectId);
    expect([record?.bytes.toString("hex"), more]).toEqual([left.bytes.toString("hex"), []]);
    const view = await ownerOf(first, project).getRefresh(left.record.refresh_id);
    expect(Date.parse(view.started_at)).toBe(left.record.requested_at / 1000);
    expect((await ask(project, "died-early")).body).toEqual(reply.body);
    expect(await stage.recordsOf(project.projectId)).toHaveLength(1);
  });

  it("after it was published is published again, byte for byte, and charged once", async () => {
    const project = await stage.createProject();
    const one = await ask(project, "died-late");
    await stage.cassandra.writeIf(
      "UPDATE idempotency_keys SET state = 'pending', record = ? WHERE project_id = ? AND key = ? IF state = 'accepted'",
      [(await stage.recordsOf(project.projectId))[0]?.bytes, project.projectId, "died-late"],
    );
    const two = await ask(project, "died-late", { ingress: second });
    expect([two.status, two.body]).toEqual([202, one.body]);
    expect(limitsIn(two.headers).remaining).toBe(19);
    const records = await stage.recordsOf(project.projectId);
    expect(records).toHaveLength(2);
    expect(records[1]?.bytes.equals(records[0]?.bytes ?? Buffer.alloc(0))).toBe(true);
  });

  it("in an earlier hour is charged to that hour", async () => {
    const project = await stage.createProject({ refreshesPerHour: 1 });
    const left = await leaveClaim(project, "an-hour-ago", stage.clock.nowMs() - 3_600_000);
    const reply = await ask(project, "an-hour-ago");
    expect([reply.status, reply.body.refresh_id]).toEqual([202, left.record.refresh_id]);
    expect(limitsIn(reply.headers).remaining).toBe(1);
    expect((await ask(project, "now")).status).toBe(202);
  });
});

describe("a request that was refused", () => {
  it("for a full hour is requested anew, under a new id, when there is room", async () => {
    const nextHourMs = (Math.floor(Date.now() / 3_600_000) + 1) * 3_600_000;
    const clock = new SetClock(nextHourMs - 1);
    const ingress = await stage.ingress({}, clock);
    const project = await stage.createProject({ refreshesPerHour: 1 });
    const at = async () => ({ ingress, headers: await project.wallet.headers(Math.floor(clock.nowMs() / 1000)) });
    await ask(project, "first", await at());
    expect((await ask(project, "second", await at())).status).toBe(429);
    expect((await ask(project, "second", await at())).status).toBe(429);
    clock.advance(1);
    const reply = await ask(project, "second", await at());
    expect(reply.status).toBe(202);
    expect(await stage.recordsOf(project.projectId)).toHaveLength(2);
    expect((await ask(project, "second", await at())).body).toEqual(reply.body);
  });

  it("keeps its key for its own content", async () => {
    const project = await stage.createProject({ refreshesPerHour: 1 });
    await ask(project, "first");
    expect((await ask(project, "second")).status).toBe(429);
    expect((await ask(project, "second", { tokenIds: ["9"] })).status).toBe(422);
  });
});

describe("a claim that a repetition has taken up", () => {
  it("is not freed by the request that made it: a third one does not publish another refresh beside the second", async () => {
    const project = await stage.createProject();
    const [first, second, third] = [draftOf(project), draftOf(project), draftOf(project)];
    const [one, two] = [claimsOf(), claimsOf()];
    await one.claim("three", first);
    expect(await two.claim("three", second)).toEqual({ state: "pending", draft: first, resumed: true });
    expect(await one.release("three", first.record, false)).toBe(false);
    expect(await one.claim("three", third)).toEqual({ state: "pending", draft: first, resumed: true });
    await two.accept("three", first.record);
    expect(await one.claim("three", third)).toEqual({ state: "accepted", refreshId: first.record.refresh_id });
  });

  it("is not taken up any more once it was freed: the repetition makes it anew", async () => {
    const project = await stage.createProject();
    const [first, second] = [draftOf(project), draftOf(project)];
    const claims = claimsOf();
    await claims.claim("freed", first);
    expect(await claims.release("freed", first.record, false)).toBe(true);
    expect(await claims.claim("freed", second)).toEqual({ state: "pending", draft: second, resumed: false });
  });

  it("is freed when its hour is over and was full: it can never be carried out", async () => {
    const project = await stage.createProject({ refreshesPerHour: 1 });
    const anHourAgoMs = stage.clock.nowMs() - 3_600_000;
    await stage.storeRefresh(project, anHourAgoMs * 1000);
    const left = await leaveClaim(project, "full-then", anHourAgoMs);
    expect((await ask(project, "full-then")).status).toBe(429);
    const anew = await ask(project, "full-then");
    expect(anew.status).toBe(202);
    expect(anew.body.refresh_id).not.toBe(left.record.refresh_id);
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([anew.body.refresh_id]);
  });
});

describe("the rows of the keys", () => {
  it("go by themselves after a day and a little, whatever was changed in them", async () => {
    const project = await stage.createProject({ refreshesPerHour: 1 });
    await ask(project, "accepted");
    await ask(project, "refused");
    const rows = await stage.cassandra.read(
      "SELECT key, state, ttl(refresh_id) AS claim_ttl, ttl(state) AS state_ttl FROM idempotency_keys WHERE project_id = ? AND key IN ? ALLOW FILTERING",
      [project.projectId, ["accepted", "refused"]],
    );
    expect(rows.map(({ key, state }) => [key, state]).sort()).toEqual([
      ["accepted", "accepted"],
      ["refused", "refused"],
    ]);
    for (const { claim_ttl: claimTtl, state_ttl: stateTtl } of rows) {
      expect(Number(claimTtl)).toBeGreaterThan(86_400);
      expect(Number(claimTtl)).toBeLessThanOrEqual(86_460);
      expect(Number(stateTtl)).toBeGreaterThan(86_400);
      expect(Number(stateTtl)).toBeLessThan(Number(claimTtl));
    }
  });
});

it("answers 503 and publishes nothing while claims cannot be asked; without a key it goes on", async () => {
  const project = await stage.createProject();
  await stage.cassandra.write("DROP TABLE idempotency_keys", []);
  const reply = await ask(project, "nobody-to-ask");
  expect([reply.status, reply.body.code, reply.headers.get("retry-after")]).toEqual([503, "unavailable", "2"]);
  const accepted = await ownerOf(first, project).requestRefresh(project.collection, ["1"]);
  expect(limitsIn(accepted.headers).remaining).toBe(19);
  expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([accepted.body.refresh_id]);
});
