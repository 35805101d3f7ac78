import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServerHandle, startServer } from "../../deploy/local/lifecycle.ts";
import { privateSettings, removePrivateStack } from "../../deploy/local/private.ts";
import { addresses, type StackSettings } from "../../deploy/local/settings.ts";
import { waitFor } from "../support/wait-for.ts";
import { endpoint, type Ingress, IngressStage, limitsIn, ownerOf, type StageProject } from "./ingress-stage.ts";

interface Reply {
  refresh_id: string;
  code: string;
  message: string;
}

const post = (ingress: Ingress, project: StageProject, headers: Record<string, string> = {}) =>
  ownerOf(ingress, project).send<Reply>("POST", endpoint, {
    body: { collection_address: project.collection, token_ids: ["1"] },
    headers,
  });

const logged = (ingress: Ingress, event: string) => ingress.context.logs.filter((line) => line.event === event).length;

describe("while Redis is away", () => {
  let settings: StackSettings;
  let redis: ServerHandle;
  let stage: IngressStage;
  let first: Ingress;
  let second: Ingress;

  beforeAll(async () => {
    settings = await privateSettings("ingress-redis");
    redis = await startServer("redis", settings);
    stage = await IngressStage.open("ingress-redis", { REDIS_URL: addresses(settings).redisUrl });
    [first, second] = await Promise.all([stage.ingress(), stage.ingress()]);
  });
  afterAll(async () => {
    await stage?.close();
    await removePrivateStack(settings);
  });

  const back = async () => {
    for (const ingress of [first, second]) {
      const lost = logged(ingress, "redis.lost");
      await waitFor(
        "Redis is found again",
        () => logged(ingress, "redis.found"),
        (found) => found >= lost,
      );
    }
  };

  it("the hour is counted by the rows, and Redis is told when it is back", async () => {
    const project = await stage.createProject({ refreshesPerHour: 5 });
    expect(limitsIn((await post(first, project)).headers).remaining).toBe(4);
    await redis.kill("SIGKILL");
    for (const [ingress, remaining] of [
      [first, 3],
      [second, 2],
      [first, 1],
    ] as const) {
      const reply = await post(ingress, project);
      expect([reply.status, limitsIn(reply.headers).remaining]).toEqual([202, remaining]);
    }
    await redis.restart();
    await back();
    expect(limitsIn((await post(second, project)).headers).remaining).toBe(0);
    for (const ingress of [first, second]) expect((await post(ingress, project)).status).toBe(429);
    expect(await stage.recordsOf(project.projectId)).toHaveLength(5);
  });

  it("one instance never grants more than the hour has, however many ask at once", async () => {
    const project = await stage.createProject({ refreshesPerHour: 4 });
    await redis.kill("SIGKILL");
    const replies = await Promise.all(Array.from({ length: 20 }, () => post(first, project)));
    await redis.restart();
    await back();
    expect(replies.filter(({ status }) => status === 202)).toHaveLength(4);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(16);
  });

  it("a server that hangs keeps no request waiting until it answers", async () => {
    const project = await stage.createProject({ refreshesPerHour: 4 });
    await redis.kill("SIGSTOP");
    const replies = await Promise.all(Array.from({ length: 8 }, () => post(first, project)));
    await redis.kill("SIGCONT");
    await back();
    expect(replies.map(({ status }) => status).sort()).toEqual([202, 202, 202, 202, 429, 429, 429, 429]);
  });

  it("an IP address is held to its rate by each instance alone", async () => {
    const alone = await stage.ingress({ REDIS_URL: "redis://127.0.0.1:1", REQUESTS_PER_SECOND_PER_IP: "5" });
    const statuses = await Promise.all(Array.from({ length: 8 }, async () => (await fetch(`${alone.url}/openapi.json`)).status));
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
    const { body } = await alone.context.metrics.text();
    expect(body).toContain('rate_limit_decisions_total{limit="address",store="fallback",decision="refused",service="ingress"} 3');
    expect(await alone.context.health.live()).toEqual({});
    alone.context.health.markStarted();
    expect(await alone.context.health.ready()).toEqual({});
  });
});

describe("while Kafka is away", () => {
  let settings: StackSettings;
  let kafka: ServerHandle;
  let stage: IngressStage;
  let ingress: Ingress;

  beforeAll(async () => {
    settings = await privateSettings("ingress-kafka");
    kafka = await startServer("kafka", settings);
    stage = await IngressStage.open("ingress-kafka", { KAFKA_BROKERS: addresses(settings).kafkaBrokers.join(",") });
    ingress = await stage.ingress({ PUBLISH_TIMEOUT_MS: "3000" });
  });
  afterAll(async () => {
    await stage?.close();
    await removePrivateStack(settings);
  });

  it("a request is refused, its place given back, and nothing of it exists", async () => {
    const project = await stage.createProject();
    await kafka.kill("SIGKILL");
    const replies = [await post(ingress, project), await post(ingress, project, { "idempotency-key": "k" })];
    for (const { status, body, headers } of replies) {
      expect([status, body.code, headers.get("retry-after"), limitsIn(headers).remaining]).toEqual([503, "unavailable", "5", 20]);
    }
    const list = await ownerOf(ingress, project).send<{ result: unknown[] }>("GET", endpoint);
    expect([list.status, list.body.result]).toEqual([200, []]);
    await kafka.restart();
    const accepted = await waitFor(
      "Kafka",
      () => post(ingress, project, { "idempotency-key": "k" }),
      ({ status }) => status === 202,
    );
    expect(limitsIn(accepted.headers).remaining).toBe(19);
    await stage.readAnew();
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([accepted.body.refresh_id]);
    expect((await post(ingress, project, { "idempotency-key": "k" })).body).toEqual(accepted.body);
  });

  it("a request that was sent and not answered is left open, and its repetition ends it", async () => {
    const project = await stage.createProject();
    const before = await post(ingress, project);
    expect(before.status).toBe(202);
    await kafka.kill("SIGSTOP");
    const open = await post(ingress, project, { "idempotency-key": "k" });
    const [refreshId = ""] = /[0-9a-f-]{36}/.exec(open.body.message) ?? [];
    expect([open.status, open.body.code, limitsIn(open.headers).remaining]).toEqual([503, "acceptance_unknown", 18]);
    expect((await ownerOf(ingress, project).send("GET", `${endpoint}/${refreshId}`)).status).toBe(404);
    await kafka.kill("SIGCONT");
    const again = await waitFor(
      "Kafka",
      () => post(ingress, project, { "idempotency-key": "k" }),
      ({ status }) => status === 202,
    );
    expect(again.body.refresh_id).toBe(refreshId);
    expect(limitsIn(again.headers).remaining).toBe(18);
    await stage.readAnew();
    const ofIt = (await stage.recordsOf(project.projectId)).filter(({ key }) => key === refreshId);
    expect(new Set(ofIt.map(({ bytes }) => bytes.toString("hex"))).size).toBe(1);
    expect((await ownerOf(ingress, project).getRefresh(refreshId)).status).toBe("queued");
  });
});

describe("while Cassandra is away", () => {
  let settings: StackSettings;
  let cassandra: ServerHandle;
  let stage: IngressStage;
  let ingress: Ingress;

  beforeAll(async () => {
    settings = await privateSettings("ingress-cassandra");
    cassandra = await startServer("cassandra", settings);
    const { cassandraContactPoints, cassandraPort } = addresses(settings);
    const contactPoints = cassandraContactPoints.map((host) => `${host}:${cassandraPort}`).join(",");
    stage = await IngressStage.open("ingress-cassandra", { CASSANDRA_CONTACT_POINTS: contactPoints });
    ingress = await stage.ingress();
  });
  afterAll(async () => {
    await stage?.close();
    await removePrivateStack(settings);
  });

  it.each(["SIGKILL", "SIGSTOP"] as const)("every endpoint answers 503 meanwhile and takes nothing in (%s)", async (signal) => {
    const project = await stage.createProject();
    const owner = ownerOf(ingress, project);
    await cassandra.kill(signal);
    const replies = await Promise.all([
      post(ingress, project),
      post(ingress, project, { "idempotency-key": "k" }),
      owner.send<Reply>("GET", endpoint),
      owner.send<Reply>("GET", `${endpoint}/01a1fc5e-77a1-7187-b0e9-0460829f6814`),
      ownerOf(ingress, project, "amr_0000000000000000000000000000000000000000000000000").send<Reply>("GET", endpoint),
    ]);
    if (signal === "SIGSTOP") await cassandra.kill("SIGCONT");
    else await cassandra.restart();
    expect(replies.map(({ status, body }) => `${status} ${body.code}`).slice(0, 4)).toEqual(Array(4).fill("503 unavailable"));
    expect(replies.every(({ headers }) => headers.get("retry-after") !== null || headers.get("x-request-id") !== null)).toBe(
      true,
    );
    // A project of afterwards: a killed server of the local stack forgets its last seconds.
    const later = await waitFor(
      "Cassandra",
      () => stage.createProject(),
      () => true,
    );
    const accepted = await waitFor(
      "Cassandra",
      () => post(ingress, later),
      ({ status }) => status === 202,
    );
    expect((await stage.recordsOf(later.projectId)).map(({ key }) => key)).toEqual([accepted.body.refresh_id]);
    expect(await stage.recordsOf(project.projectId)).toEqual([]);
  });

  it("a refresh that was published is accepted, whatever becomes of its rows", async () => {
    const project = await stage.createProject();
    await stage.cassandra.write("DROP TABLE refresh_tokens", []);
    const reply = await post(ingress, project);
    expect([reply.status, limitsIn(reply.headers).remaining]).toEqual([202, 19]);
    expect((await stage.recordsOf(project.projectId)).map(({ key }) => key)).toEqual([reply.body.refresh_id]);
    expect(logged(ingress, "refresh.rows_left_to_splitter")).toBe(1);
  });
});
