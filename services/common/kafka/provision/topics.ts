import { setTimeout as delay } from "node:timers/promises";
import kafkajs, { type Admin, type Kafka } from "kafkajs";
import { messageOf } from "../../errors.ts";
import type { TopicDefinition, Topics } from "../topics.ts";
import { type ExistingTopic, planTopic, type TopicPlan } from "./topic-plan.ts";

export interface ProvisionTopicsOptions {
  readonly topics: Topics;
  /** The highest to be used; 0: the number of brokers, up to 3. */
  readonly replicationFactor: number;
  /** Look, and change nothing. */
  readonly dryRun: boolean;
}

// Node finds the names of few of the package's exports; the rest come with its default.
const { ConfigResourceTypes, ConfigSource, KafkaJSAggregateError } = kafkajs;

const requestTimeoutMs = 20_000;
const doneWithinMs = 30_000;
const wantedReplicas = 3;

/**
 * Makes the cluster's topics as in deploy/topics.yaml: creates, corrects our settings, adds partitions where the count is not
 * fixed, deletes nothing. Safe to repeat and to run twice at once. Resolves when the cluster works by it, every leader known.
 * When a plan carries a refusal, nothing was changed.
 */
export async function provisionTopics(kafka: Kafka, options: ProvisionTopicsOptions): Promise<readonly TopicPlan[]> {
  const admin = kafka.admin();
  await admin.connect();
  try {
    const plans = await plan(admin, options);
    const refused = plans.some(({ refusal }) => refusal !== undefined);
    if (options.dryRun || refused || !plans.some(changes)) return plans;
    await apply(admin, plans);
    await untilDone(admin, options);
    return plans;
  } finally {
    await admin.disconnect();
  }
}

async function plan(admin: Admin, { topics, replicationFactor }: ProvisionTopicsOptions): Promise<TopicPlan[]> {
  const { brokers } = await admin.describeCluster();
  const highest = replicationFactor === 0 ? Math.min(brokers.length, wantedReplicas) : replicationFactor;
  const existing = await describe(admin, topics.all);
  return topics.all.map((topic) => planTopic(topic, existing.get(topic.name), highest));
}

async function apply(admin: Admin, plans: readonly TopicPlan[]): Promise<void> {
  await create(admin, plans);
  await grow(admin, plans);
  await alter(admin, plans);
}

function changes({ create, growTo, alterTo }: TopicPlan): boolean {
  return create !== undefined || growTo !== undefined || alterTo !== undefined;
}

/** One request for all: a topic that another run has made in between is no error. */
async function create(admin: Admin, plans: readonly TopicPlan[]): Promise<void> {
  const topics = plans.flatMap(({ topic, create }) =>
    create === undefined
      ? []
      : [
          {
            topic: topic.name,
            numPartitions: topic.partitions,
            replicationFactor: create.replication,
            configEntries: entries(create.config),
          },
        ],
  );
  if (topics.length === 0) return;
  try {
    await admin.createTopics({ topics, waitForLeaders: false, timeout: requestTimeoutMs });
  } catch (error) {
    const problems = creationProblems(error);
    if (problems.length > 0) throw new Error(`not created: ${problems.join("; ")}`, { cause: error });
  }
}

/** kafkajs gathers an error for each topic; it forgives existing ones only when there is no other error. */
function creationProblems(error: unknown): string[] {
  if (!(error instanceof KafkaJSAggregateError)) return [messageOf(error)];
  const failed = error.errors.filter((one) => typeOf(one) !== "TOPIC_ALREADY_EXISTS");
  const reasons = [...new Set(failed.map(messageOf))];
  return reasons.map(
    (reason) =>
      `${failed
        .filter((one) => messageOf(one) === reason)
        .map(topicOf)
        .join(" and ")}: ${reason}`,
  );
}

function topicOf(error: unknown): unknown {
  return error instanceof Error && "topic" in error ? error.topic : "a topic";
}

async function grow(admin: Admin, plans: readonly TopicPlan[]): Promise<void> {
  for (const { topic, growTo } of plans) {
    if (growTo === undefined) continue;
    try {
      await admin.createPartitions({ topicPartitions: [{ topic: topic.name, count: growTo }], timeout: requestTimeoutMs });
    } catch (error) {
      // Another run has added them in between; were it something else, the topic would not be found as it should be.
      if (typeOf(error) !== "INVALID_PARTITIONS") throw error;
    }
  }
}

async function alter(admin: Admin, plans: readonly TopicPlan[]): Promise<void> {
  const resources = plans.flatMap(({ topic, alterTo }) =>
    alterTo === undefined ? [] : [{ type: ConfigResourceTypes.TOPIC, name: topic.name, configEntries: entries(alterTo) }],
  );
  if (resources.length > 0) await admin.alterConfigs({ validateOnly: false, resources });
}

function entries(config: Readonly<Record<string, string>>): { name: string; value: string }[] {
  return Object.entries(config).map(([name, value]) => ({ name, value }));
}

async function describe(admin: Admin, topics: readonly TopicDefinition[]): Promise<Map<string, ExistingTopic>> {
  const found = await Promise.all(topics.map(async (topic) => ({ topic, partitions: await partitionsOf(admin, topic) })));
  const existing = found.filter(({ partitions }) => partitions !== undefined);
  const configs = await configsOf(
    admin,
    existing.map(({ topic }) => topic.name),
  );
  return new Map(
    existing.map(({ topic, partitions = [] }) => [
      topic.name,
      {
        partitions: partitions.length,
        replication: partitions[0]?.replicas.length ?? 0,
        ...(configs.get(topic.name) ?? { config: {}, overrides: {} }),
      },
    ]),
  );
}

/** Undefined when there is no such topic. Asked topic by topic: for a list kafkajs does not say which is missing. */
async function partitionsOf(admin: Admin, topic: TopicDefinition) {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic.name] });
    return topics[0]?.partitions;
  } catch (error) {
    if (typeOf(error) === "UNKNOWN_TOPIC_OR_PARTITION") return undefined;
    throw error;
  }
}

type Configs = Map<string, Pick<ExistingTopic, "config" | "overrides">>;

async function configsOf(admin: Admin, names: readonly string[]): Promise<Configs> {
  if (names.length === 0) return new Map();
  const described = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({ type: ConfigResourceTypes.TOPIC, name })),
  });
  return new Map(
    described.resources.map(({ resourceName, configEntries }) => [
      resourceName,
      {
        config: Object.fromEntries(configEntries.map(({ configName, configValue }) => [configName, configValue])),
        overrides: Object.fromEntries(
          configEntries
            .filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG)
            .map(({ configName, configValue }) => [configName, configValue]),
        ),
      },
    ]),
  );
}

/** What a broker has agreed to it knows a little later, new topics and new settings alike. */
async function untilDone(admin: Admin, options: ProvisionTopicsOptions): Promise<void> {
  const untilMs = performance.now() + doneWithinMs;
  for (let missing = await notDone(admin, options); missing !== undefined; missing = await notDone(admin, options)) {
    if (performance.now() > untilMs) throw new Error(`not done in ${doneWithinMs} ms: ${missing}`);
    await delay(25);
  }
}

async function notDone(admin: Admin, options: ProvisionTopicsOptions): Promise<string | undefined> {
  try {
    const undone = (await plan(admin, options)).find(changes);
    if (undone !== undefined) return `${undone.topic.name}: ${undone.notes.join(", ")}`;
    const led = await Promise.all(options.topics.all.map(async (topic) => ({ topic, led: await hasLeaders(admin, topic) })));
    return led.find((one) => !one.led)?.topic.name;
  } catch (error) {
    return messageOf(error);
  }
}

async function hasLeaders(admin: Admin, topic: TopicDefinition): Promise<boolean> {
  const partitions = (await partitionsOf(admin, topic)) ?? [];
  return partitions.length > 0 && partitions.every(({ leader }) => leader >= 0);
}

/** The broker's error, through what kafkajs wraps around it. */
function typeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("type" in error && typeof error.type === "string") return error.type;
  return typeOf(error.cause);
}
