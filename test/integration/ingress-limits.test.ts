import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKey } from "../../services/common/http/api-key.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { Metrics } from "../../services/common/metrics/metrics.ts";
import { closeRedis, connectRedis, type Redis } from "../../services/common/redis/client.ts";
import { countRateDecisions, RequestRate } from "../../services/ingress/adapters/request-rate.ts";
import { waitFor } from "../support/wait-for.ts";
import { createWallet } from "../support/wallet.ts";
import { endpoint, type Ingress, IngressStage, limitsIn, ownerOf, SetClock, type StageProject } from "./ingress-stage.ts";

let stage: IngressStage;
let first: Ingress;
let second: Ingress;
let redis: Redis;

/** Two instances behind one proxy, with the limits of the specification. */
const behindProxy = { TRUSTED_PROXY_COUNT: "1", REQUESTS_PER_SECOND_PER_IP: "5" };

beforeAll(async () => {
  stage = await IngressStage.open("ingress-limits");
  [first, second] = await Promise.all([stage.ingress(), stage.ingress()]);
  const { REDIS_URL = "", REDIS_KEY_PREFIX = "" } = stage.environment.env;
  redis = await connectRedis({ url: REDIS_URL, keyPrefix: REDIS_KEY_PREFIX, logger: createLogger("test", "silent") });
});
afterAll(async () => {
  await closeRedis(redis);
  await stage.close();
});

const post = (ingress: Ingress, project: StageProject, headers: Record<string, string> = {}, apiKey?: string) =>
  ownerOf(ingress, project, apiKey).send<{ refresh_id: string; code: string }>("POST", endpoint, {
    body: { collection_address: project.collection, token_ids: ["1"] },
    headers,
  });

describe("the refreshes of an hour", () => {
  it("are 20, counted down in the headers, and then refused with 429 and the time to wait", async () => {
    const project = await stage.createProject();
    const remaining = [];
    for (let count = 0; count < 20; count += 1) {
      const reply = await post(first, project);
      expect(reply.status).toBe(202);
      remaining.push(limitsIn(reply.headers).remaining);
    }
    expect(remaining).toEqual(Array.from({ length: 20 }, (_, index) => 19 - index));
    const refused = await post(first, project);
    const reset = stage.clock.nowMs() / 1000 + 1_800;
    expect([refused.status, refused.body.code]).toEqual([429, "refresh_limit_exceeded"]);
    expect(limitsIn(refused.headers)).toEqual({ limit: 20, remaining: 0, reset });
    expect(refused.headers.get("retry-after")).toBe("1800");
    expect((await ownerOf(first, project).send("GET", endpoint)).headers.get("x-svc-refreshes-limit")).toBeNull();
  });

  it("are shared by all instances, to the last one, however many ask at once", async () => {
    const project = await stage.createProject();
    const replies = await Promise.all(Array.from({ length: 60 }, (_, index) => post(index % 2 === 0 ? first : second, project)));
    const accepted = replies.filter(({ status }) => status === 202);
    expect(accepted).toHaveLength(20);
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([202, 429]));
    const records = await stage.recordsOf(project.projectId);
    expect(records.map(({ key }) => key).sort()).toEqual(accepted.map(({ body }) => body.refresh_id).sort());
  });

  it("are as many as the project's own number says", async () => {
    const project = await stage.createProject({ refreshesPerHour: 2 });
    expect(limitsIn((await post(first, project)).headers)).toMatchObject({ limit: 2, remaining: 1 });
    expect((await post(second, project)).status).toBe(202);
    expect((await post(first, project)).status).toBe(429);
  });

  it("begin anew with the next calendar hour, to the millisecond", async () => {
    const nextHourMs = (Math.floor(Date.now() / 3_600_000) + 1) * 3_600_000;
    const clock = new SetClock(nextHourMs - 1_000);
    const ingress = await stage.ingress({}, clock);
    const project = await stage.createProject({ refreshesPerHour: 1 });
    const ask = async () => post(ingress, project, await project.wallet.headers(Math.floor(clock.nowMs() / 1000)));
    expect(limitsIn((await ask()).headers)).toEqual({ limit: 1, remaining: 0, reset: nextHourMs / 1000 });
    const refused = await ask();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    clock.advance(999);
    expect((await ask()).status).toBe(429);
    clock.advance(1);
    const anew = await ask();
    expect(anew.status).toBe(202);
    expect(limitsIn(anew.headers)).toEqual({ limit: 1, remaining: 0, reset: nextHourMs / 1000 + 3_600 });
  });

  it("are known from the rows when Redis has forgotten them", async () => {
    const project = await stage.createProject({ refreshesPerHour: 3 });
    await post(first, project);
    await post(second, project);
    const hour = stage.clock.nowMs() / 1000 - 1_800;
    expect(await redis.del(`refreshes:${project.projectId}:${hour}`)).toBe(1);
    expect(limitsIn((await post(second, project)).headers).remaining).toBe(0);
    expect((await post(first, project)).status).toBe(429);
  });

  it("are counted per project, not per owner", async () => {
    const wallet = createWallet();
    const [one, two] = [await stage.createProject({ wallet, refreshesPerHour: 1 }), await stage.createProject({ wallet })];
    await post(first, one);
    expect((await post(first, one)).status).toBe(429);
    expect((await post(first, two)).status).toBe(202);
  });
});

describe("the rate of an IP address", () => {
  let limited: Ingress;
  let twin: Ingress;
  beforeAll(async () => {
    [limited, twin] = await Promise.all([stage.ingress(behindProxy), stage.ingress(behindProxy)]);
  });

  const get = (path: string, from: string, init: RequestInit = {}, ingress = limited) =>
    fetch(ingress.url + path, { ...init, headers: { "x-forwarded-for": from, ...init.headers } });
  const statuses = async (calls: Promise<Response>[]) => (await Promise.all(calls)).map(({ status }) => status).sort();

  it("I11, I14, I15: is 5 a second over all endpoints, whatever they answer, HEAD, OPTIONS and 404 included", async () => {
    const from = "198.51.100.1";
    const calls = [
      get("/openapi.json", from),
      get("/nothing", from),
      get(endpoint, from),
      get("/openapi.json", from, { method: "HEAD" }),
      get(endpoint, from, { method: "OPTIONS" }),
    ];
    expect(await statuses(calls)).toEqual([200, 200, 204, 401, 404]);
    const refused = await get("/openapi.json", from);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await refused.json()).toMatchObject({ code: "rate_limit_exceeded" });
    await waitFor(
      "the next second",
      () => get("/openapi.json", from),
      ({ status }) => status === 200,
    );
  });

  it("I16 counts failed signatures, wrong methods and ill forms", async () => {
    const from = "198.51.100.2";
    const calls = [
      get(endpoint, from, { headers: { "x-svc-eth-signature": "0x" } }),
      get(endpoint, from, { method: "DELETE" }),
      get(`${endpoint}/x`, from),
      get(endpoint, from, { method: "POST", body: "x" }),
      get("/%zz", from),
    ];
    expect(await statuses(calls)).toEqual([401, 401, 401, 404, 405]);
    expect((await get("/openapi.json", from)).status).toBe(429);
  });

  it("I13 is shared by all instances", async () => {
    const from = "198.51.100.3";
    const calls = [0, 1, 2, 3, 4, 5, 6, 7].map((index) => get("/openapi.json", from, {}, index % 2 === 0 ? limited : twin));
    expect(await statuses(calls)).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
  });

  it.each([
    ["I6 one /64 of IPv6", (index: number) => `2001:db8:0:1::${index + 1}`, 1],
    ["I5 an address and its IPv4-mapped form", (index: number) => (index % 2 === 0 ? "198.51.100.4" : "::ffff:198.51.100.4"), 1],
    ["I1 what the proxy saw, whatever the client claims", (index: number) => `203.0.113.${index}, 198.51.100.5`, 1],
    ["I3 an address with its ports", (index: number) => `198.51.100.6:${1024 + index}`, 1],
    ["I4 an address in brackets", (index: number) => (index % 2 === 0 ? "[2001:db8:0:2::1]" : "[2001:db8:0:2::1]:443"), 1],
    ["I7 each /64 of a /56, which may be different customers", (index: number) => `2001:db8:0:10${index}::1`, 0],
    ["different addresses, each its own", (index: number) => `198.51.100.${10 + index}`, 0],
  ])("counts %s", async (_name, from, refused) => {
    const calls = Array.from({ length: 6 }, (_, index) => get("/openapi.json", from(index)));
    expect((await statuses(calls)).filter((status) => status === 429)).toHaveLength(refused);
  });

  it("I1, I8, I9: believes no header when no proxy is configured", async () => {
    const direct = await stage.ingress({
      REQUESTS_PER_SECOND_PER_IP: "5",
      REDIS_KEY_PREFIX: `${stage.environment.name}-direct:`,
    });
    const calls = Array.from({ length: 6 }, (_, index) =>
      get(
        "/openapi.json",
        `198.51.100.${20 + index}`,
        { headers: { "x-real-ip": `1.1.1.${index}`, forwarded: `for=1.1.1.${index}` } },
        direct,
      ),
    );
    expect((await statuses(calls)).filter((status) => status === 429)).toHaveLength(1);
  });

  it("I12 lets no second at all hold more, wherever it begins", async () => {
    const rate = new RequestRate(redis, "address", countRateDecisions(new Metrics("test")));
    const allowed: { startMs: number; endMs: number }[] = [];
    while (allowed.length < 13) {
      const startMs = performance.now();
      const { allowed: yes } = await rate.take("sliding", 5);
      if (yes) allowed.push({ startMs, endMs: performance.now() });
    }
    for (const [index, { startMs }] of allowed.entries()) {
      const sixth = allowed[index + 5];
      // Redis counts whole milliseconds.
      if (sixth !== undefined) expect(sixth.endMs - startMs).toBeGreaterThan(998);
    }
  });
});

describe("a request with an API key", () => {
  let limited: Ingress;
  beforeAll(async () => {
    limited = await stage.ingress(behindProxy);
  });
  const list = (project: StageProject, from: string, apiKey?: string, headers: Record<string, string> = {}) =>
    ownerOf(limited, project, apiKey).send<{ code: string }>("GET", endpoint, {
      headers: { "x-forwarded-for": from, ...headers },
    });

  it("is counted at the key's own rate and not against its address", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 12);
    const from = "198.51.100.41";
    const replies = await Promise.all(Array.from({ length: 14 }, () => list(project, from, apiKey)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(12);
    expect(replies.find(({ status }) => status !== 200)).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
    expect((await list(project, from)).status).toBe(200);
  });

  it("gets in from an address that has used up its own rate", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 100);
    const from = "198.51.100.42";
    const replies = await Promise.all(Array.from({ length: 7 }, () => list(project, from)));
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(2);
    expect((await list(project, from, apiKey)).status).toBe(200);
  });

  it("shares the rate with the project's other keys and addresses", async () => {
    const project = await stage.createProject();
    const keys = await Promise.all([stage.createApiKey(project.projectId, 6), stage.createApiKey(project.projectId, 6)]);
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, index) => list(project, `198.51.101.${index}`, keys[index % 2]?.apiKey)),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(6);
  });

  it.each<[string, string, (apiKey: string) => string]>([
    ["I17 that nobody knows", "198.51.102.1", () => createApiKey(randomBytes(32)).apiKey],
    ["H8 with another case", "198.51.102.2", (apiKey) => apiKey.toUpperCase()],
    ["H7 with only its prefix", "198.51.102.3", (apiKey) => apiKey.slice(0, 4)],
    ["H2 that is empty", "198.51.102.4", () => ""],
    ["H3 of ten kilobytes", "198.51.102.5", (apiKey) => apiKey.repeat(200)],
  ])("%s is 401, and counted against its address", async (_name, from, change) => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 100);
    const replies = await Promise.all(Array.from({ length: 6 }, () => list(project, from, change(apiKey))));
    expect(replies.map(({ status, body }) => `${status} ${body.code}`).sort()).toEqual([
      ...Array.from({ length: 5 }, () => "401 invalid_api_key"),
      "429 rate_limit_exceeded",
    ]);
  });

  it("that is given twice is 401", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 100);
    expect((await list(project, "198.51.100.43", `${apiKey}, ${apiKey}`)).status).toBe(401);
  });

  it("H5, H10: of another owner's project is 403, for all endpoints", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey((await stage.createProject()).projectId, 100);
    expect(await list(project, "198.51.100.44", apiKey)).toMatchObject({ status: 403, body: { code: "not_the_owner" } });
    const reply = await post(limited, project, { "x-forwarded-for": "198.51.100.44" }, apiKey);
    expect([reply.status, reply.body.code]).toEqual([403, "not_the_owner"]);
  });

  it("and no signature is 401, and guessing with it is as slow as without", async () => {
    const project = await stage.createProject();
    const { apiKey } = await stage.createApiKey(project.projectId, 100);
    const replies = await Promise.all(
      Array.from({ length: 7 }, () => list(project, "198.51.100.45", apiKey, { "x-svc-eth-signature": `0x${"1".repeat(130)}` })),
    );
    expect(replies.map(({ status }) => status).sort()).toEqual([401, 401, 401, 401, 401, 429, 429]);
    expect((await list(project, "198.51.100.45", apiKey)).status).toBe(200);
  });

  it("H6 that was revoked is believed for ten seconds at most", async () => {
    const clock = new SetClock(Date.now());
    const ingress = await stage.ingress({}, clock);
    const project = await stage.createProject();
    const { apiKey, hash } = await stage.createApiKey(project.projectId, 100);
    const ask = async () =>
      (
        await ownerOf(ingress, project, apiKey).send("GET", endpoint, {
          headers: await project.wallet.headers((clock.nowMs() / 1000) | 0),
        })
      ).status;
    expect(await ask()).toBe(200);
    await stage.cassandra.write("UPDATE api_keys SET revoked_at = ? WHERE key_hash = ?", [1, hash]);
    expect(await ask()).toBe(200);
    clock.advance(10_001);
    await waitFor("the revocation", ask, (status) => status === 401);
  });
});
