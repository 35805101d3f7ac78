import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import kafkajs from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stackEnvironment } from "../../deploy/development/stack.ts";
import { parseProvisionSettings, provision } from "../../deploy/provision.ts";
import { openClient } from "../../services/common/cassandra/client.ts";
import { dropKeyspace } from "../../services/common/cassandra/migrate.ts";
import { createKafka } from "../../services/common/kafka/client.ts";
import { provisionSchemas } from "../../services/common/kafka/provision/schemas.ts";
import { provisionTopics } from "../../services/common/kafka/provision/topics.ts";
import { schemaText, subjectOf } from "../../services/common/kafka/schema-files.ts";
import { loadTopics, type TopicDefinition, type Topics } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { waitFor } from "../support/wait-for.ts";

const environment = stackEnvironment();
const registryUrl = environment.SCHEMA_REGISTRY_URL ?? "";
const logger = createLogger("test", "silent");
const brokers = (environment.KAFKA_BROKERS ?? "").split(",");
const kafka = createKafka({ brokers, clientId: "provisioning-test", requestTimeoutMs: 60_000, logger });
const admin = kafka.admin();
const created: Topics[] = [];

beforeAll(() => admin.connect());
afterAll(async () => {
  for (const topics of created) await deleteTopics(topics);
  await admin.disconnect();
});

function uniquePrefix(): string {
  return `provisioning-${randomBytes(4).toString("hex")}.`;
}

/** Topics under names that nobody else uses, deleted at the end. */
function uniqueTopics(): Topics {
  const topics = loadTopics({ prefix: uniquePrefix() });
  created.push(topics);
  return topics;
}

async function existing(topics: Topics): Promise<string[]> {
  const names = await Promise.all(topics.all.map(async ({ name }) => ((await partitionCount(name)) === undefined ? [] : [name])));
  return names.flat();
}

async function deleteTopics(topics: Topics): Promise<void> {
  const names = await existing(topics);
  if (names.length > 0) await admin.deleteTopics({ topics: names });
}

/** Undefined when there is no such topic. */
async function partitionCount(topic: string): Promise<number | undefined> {
  try {
    return (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0]?.partitions.length;
  } catch (error) {
    if (error instanceof Error && "type" in error && error.type === "UNKNOWN_TOPIC_OR_PARTITION") return undefined;
    throw error;
  }
}

async function configOf({ name }: TopicDefinition): Promise<Record<string, string>> {
  const type = kafkajs.ConfigResourceTypes.TOPIC;
  const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type, name }] });
  return Object.fromEntries((resources[0]?.configEntries ?? []).map(({ configName, configValue }) => [configName, configValue]));
}

async function createTopic({ name }: TopicDefinition, numPartitions: number, config: Record<string, string> = {}): Promise<void> {
  const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
  await admin.createTopics({ waitForLeaders: false, topics: [{ topic: name, numPartitions, configEntries }] });
  await waitFor(
    name,
    () => partitionCount(name),
    (count) => count === numPartitions,
  );
}

async function askRegistry(method: string, path: string, body?: object): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${registryUrl}${path}`, {
    method,
    headers: { "content-type": "application/vnd.schemaregistry.v1+json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: await answer.json() };
}

async function runCommand(variables: Record<string, string>, ...options: string[]) {
  const script = new URL("../../deploy/provision.ts", import.meta.url).pathname;
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, ["--no-warnings", script, ...options], { env: { PATH, ...environment, ...variables } });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => {
    output.stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    output.stderr += chunk.toString();
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, ...output };
}

describe("the whole of it", () => {
  const prefix = uniquePrefix();
  const keyspace = prefix.replaceAll(/[^a-z0-9]/g, "_");
  const variables = { TOPIC_PREFIX: prefix, CASSANDRA_KEYSPACE: keyspace };
  const topics = loadTopics({ prefix });
  const cluster = {
    contactPoints: (environment.CASSANDRA_CONTACT_POINTS ?? "").split(","),
    datacenter: environment.CASSANDRA_DATACENTER ?? "",
    logger,
  };
  created.push(topics);
  afterAll(() => dropKeyspace({ ...cluster, keyspace }));

  async function tables(): Promise<string[]> {
    const client = await openClient(cluster);
    const found = await client.execute("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?", [keyspace]);
    await client.shutdown();
    return found.rows.map((row) => String(row.table_name));
  }

  it("is done for nobody by a dry run, which says what would be done", async () => {
    const { code, stdout } = await runCommand(variables, "--dry-run");
    expect(stdout).toMatch(new RegExp(`topic +${topics.tokenState.name} +created +12 partitions, replication 1\n`));
    expect(stdout).toMatch(/\n\d+ created\ndry run: nothing was changed\n$/);
    expect(code).toBe(0);
    expect(await existing(topics)).toEqual([]);
    expect(await tables()).toEqual([]);
    expect(await askRegistry("GET", `/subjects/${subjectOf(topics.tokenState)}/versions`)).toMatchObject({ status: 404 });
  });

  it("may be done by several at once, and leaves nothing to do", async () => {
    const settings = parseProvisionSettings({ ...environment, ...variables, LOG_LEVEL: "silent" });
    if (!settings.ok) throw new Error(settings.problems.join());
    const reports = await Promise.all([provision(settings.config), provision(settings.config)]);
    expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
    const again = await provision(settings.config);
    expect(again.problems).toEqual([]);
    expect(again.changes.filter(({ action }) => action !== "unchanged")).toEqual([]);
    expect(again.changes.map(({ name }) => name)).toEqual(expect.arrayContaining(topics.all.map(({ name }) => name)));
    expect(await existing(topics)).toHaveLength(topics.all.length);
    expect(await tables()).toContain("refresh_progress");
  });

  it("gives each subject the compatibility of its visibility", async () => {
    const levelOf = async (topic: TopicDefinition) => (await askRegistry("GET", `/config/${subjectOf(topic)}`)).body;
    expect(await levelOf(topics.tokenState)).toEqual({ compatibilityLevel: "FULL_TRANSITIVE" });
    expect(await levelOf(topics.refreshCompleted)).toEqual({ compatibilityLevel: "FULL_TRANSITIVE" });
    expect(await levelOf(topics.tokenOutcome)).toEqual({ compatibilityLevel: "BACKWARD_TRANSITIVE" });
  });

  it("has every topic as deploy/topics.yaml says", async () => {
    for (const topic of topics.all) {
      expect(await partitionCount(topic.name)).toBe(topic.partitions);
      expect(await configOf(topic)).toMatchObject({
        "cleanup.policy": topic.cleanup,
        "max.message.bytes": String(topic.maxMessageBytes),
        "message.timestamp.type": topic.timestampType,
        ...(topic.retentionMs === null ? {} : { "retention.ms": String(topic.retentionMs) }),
      });
    }
  });

  it("prints every mistake of the configuration at once, and ends with 2", async () => {
    const mistakes = { KAFKA_REPLICATION_FACTOR: "many", CASSANDRA_KEYSPACE: "No-Keyspace", SCHEMA_REGISTRY_URL: "registry" };
    const { code, stderr } = await runCommand(mistakes);
    expect(code).toBe(2);
    for (const name of Object.keys(mistakes)) expect(stderr).toContain(`\n  ${name}: `);
  });

  it("names what cannot be reached, and ends with 1; the rest is done", async () => {
    const { code, stdout } = await runCommand({ ...variables, SCHEMA_REGISTRY_URL: "http://127.0.0.1:2" });
    expect(stdout).toContain("\nrefused: schemas: the schema registry at http://127.0.0.1:2 cannot be reached: ");
    expect(stdout).toMatch(/\n\d+ unchanged\n/);
    expect(code).toBe(1);
  });
});

describe("topics", () => {
  const options = (topics: Topics) => ({ topics, replicationFactor: 1, dryRun: false });

  it("get our settings back, and keep the settings and partitions that somebody else has added", async () => {
    const topics = uniqueTopics();
    await createTopic(topics.refreshRequested, 20, {
      "retention.ms": "1000",
      "segment.ms": "3600000",
      "cleanup.policy": "compact",
    });
    const plans = await provisionTopics(kafka, options(topics));
    expect(plans.find(({ topic }) => topic === topics.refreshRequested)?.notes).toEqual([
      "cleanup.policy compact → delete",
      "retention.ms 1000 → 604800000",
      "max.message.bytes 1048588 → 2097152",
      "message.timestamp.type CreateTime → LogAppendTime",
      "kept: 20 partitions, 6 wanted",
    ]);
    expect(await configOf(topics.refreshRequested)).toMatchObject({
      "cleanup.policy": "delete",
      "retention.ms": "604800000",
      "segment.ms": "3600000",
    });
    expect(await partitionCount(topics.refreshRequested.name)).toBe(20);
  });

  it("grow where their count is not fixed, by several at once", async () => {
    const topics = uniqueTopics();
    await createTopic(topics.refreshRequested, 2);
    await Promise.all([provisionTopics(kafka, options(topics)), provisionTopics(kafka, options(topics))]);
    expect(await partitionCount(topics.refreshRequested.name)).toBe(topics.refreshRequested.partitions);
  });

  it("are left alone, all of them, when one with a fixed count has another", async () => {
    const topics = uniqueTopics();
    await createTopic(topics.tokenOutcome, 3, { "retention.ms": "1000" });
    const plans = await provisionTopics(kafka, options(topics));
    expect(plans.flatMap(({ refusal }) => refusal ?? [])).toEqual([
      expect.stringContaining("has 3 partitions and deploy/topics.yaml says 12"),
    ]);
    expect(await existing(topics)).toEqual([topics.tokenOutcome.name]);
    expect(await configOf(topics.tokenOutcome)).toMatchObject({ "retention.ms": "1000" });
  });

  it("that the cluster cannot create are named with the reason", async () => {
    const topics = uniqueTopics();
    const provisioned = provisionTopics(kafka, { topics, replicationFactor: 3, dryRun: false });
    await expect(provisioned).rejects.toThrow(/^not created: .*: Replication-factor is invalid$/);
    await expect(provisioned).rejects.toThrow(topics.refreshRequested.name);
  });
});

describe("schemas", () => {
  const changes: [string, (fields: object[]) => object[]][] = [
    ["a new field without a default", (fields) => [...fields, { name: "added", type: "string" }]],
    ["a field of another type", (fields) => [{ name: "refresh_id", type: "int" }, ...fields.slice(1)]],
  ];

  /** Registers a changed schema as a later release would, after this one; the registry's answer. */
  async function later(topic: TopicDefinition, change: (fields: object[]) => object[]) {
    const schema = JSON.parse(schemaText(topic)) as { fields: object[] };
    const changed = JSON.stringify({ ...schema, fields: change(schema.fields) });
    return askRegistry("POST", `/subjects/${subjectOf(topic)}/versions`, { schema: changed });
  }

  it.each(changes)("let no later release break what was written: %s", async (_what, change) => {
    const topics = loadTopics({ prefix: uniquePrefix() });
    await provisionSchemas({ registryUrl, topics, dryRun: false });
    for (const topic of [topics.refreshCompleted, topics.tokenOutcome]) {
      expect(await later(topic, change)).toMatchObject({
        status: 409,
        body: { message: expect.stringContaining("ncompatible") },
      });
    }
  });

  it("let a later release drop an internal field, but not one that somebody outside may read", async () => {
    const topics = loadTopics({ prefix: uniquePrefix() });
    await provisionSchemas({ registryUrl, topics, dryRun: false });
    const withoutLast = (fields: object[]) => fields.slice(0, -1);
    expect(await later(topics.tokenOutcome, withoutLast)).toMatchObject({ status: 200 });
    expect(await later(topics.refreshCompleted, withoutLast)).toMatchObject({ status: 409 });
  });

  it("that break compatibility stop it with the registry's reason, in a dry run too", async () => {
    const topics = loadTopics({ prefix: uniquePrefix() });
    const schema = JSON.parse(schemaText(topics.tokenState)) as { fields: object[] };
    const earlier = { ...schema, fields: [...schema.fields, { name: "gone", type: "string" }] };
    const subject = subjectOf(topics.tokenState);
    await askRegistry("POST", `/subjects/${subject}/versions`, { schema: JSON.stringify(earlier) });
    await askRegistry("PUT", `/config/${subject}`, { compatibility: "FORWARD" });
    for (const dryRun of [true, false]) {
      const reports = await provisionSchemas({ registryUrl, topics, dryRun });
      const { refusal, ...rest } = reports.find((report) => report.subject === subject) ?? {};
      expect(refusal).toMatch(new RegExp(`^${subject.replaceAll(".", "\\.")}: .*ncompatible`));
      expect(rest).toMatchObject({ action: "unchanged", notes: ["compatibility FORWARD → FULL_TRANSITIVE"] });
    }
    const { body } = await askRegistry("GET", `/subjects/${subject}/versions`);
    expect(body).toEqual([1]);
  });
});
