import { randomBytes } from "node:crypto";
import { createKafka } from "../../services/common/kafka/client.ts";
import { createGroupLag } from "../../services/common/kafka/consume/group-lag.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import { OperatorClient, OwnerClient } from "../support/clients.ts";
import { waitFor } from "../support/wait-for.ts";
import { createWallet } from "../support/wallet.ts";
import type { Bench } from "./bench.ts";
import type { BenchProject, Stage } from "./stage.ts";

const windowRecords = 20_000;

/** A project and the partition of the fetch topics that its id has to fall on. */
export interface PlacedWish {
  readonly url: string;
  readonly partition: number;
}

/** Ids are handed out in a row: projects are created until each wish has one that falls where it should; the others stay unused. */
export async function createProjectsOn(stage: Stage, wishes: readonly PlacedWish[]): Promise<BenchProject[]> {
  const operator = new OperatorClient(stage.system.registryUrl);
  const { partitions } = stage.system.environment.topics.tokenRequested;
  const projects: BenchProject[] = [];
  const open = new Set(wishes.keys());
  while (open.size > 0) {
    const wallet = createWallet();
    const projectId = await operator.createProject({ name: "benchmark", owner_address: wallet.address });
    const partition = partitionOf(String(projectId), partitions);
    const index = [...open].find((candidate) => wishes[candidate]?.partition === partition);
    const wish = wishes[index ?? -1];
    if (index === undefined || wish === undefined) continue;
    open.delete(index);
    const collection = `0x${randomBytes(20).toString("hex")}`;
    await operator.createCollection(projectId, {
      collection_address: collection,
      metadata_api_url: wish.url,
      token_policy: "open",
    });
    projects[index] = { projectId, collection, owner: new OwnerClient(stage.system.ingressUrl, wallet), url: wish.url };
  }
  return projects;
}

/** Resolves when the splitter has handed over every token of what was requested so far. */
export function splitAll(bench: Bench, stage: Stage): Promise<void> {
  return caughtUp(bench, stage, { group: "splitter", topic: stage.system.environment.topics.refreshRequested });
}

/** Resolves when the aggregator has stored every outcome so far. */
export function storedAll(bench: Bench, stage: Stage): Promise<void> {
  return caughtUp(bench, stage, { group: "aggregator", topic: stage.system.environment.topics.tokenOutcome });
}

/** Resolves when the fetcher has read every token so far: at most what fits its window is left. */
export function readAll(bench: Bench, stage: Stage): Promise<void> {
  const topic = stage.system.environment.topics.tokenRequested;
  return caughtUp(bench, stage, { group: "fetcher", topic, leftCount: windowRecords });
}

interface Place {
  readonly group: string;
  readonly topic: TopicDefinition;
  readonly leftCount?: number;
}

async function caughtUp(bench: Bench, stage: Stage, { group, topic, leftCount = 0 }: Place): Promise<void> {
  const { env, name } = stage.system.environment;
  const brokers = (env.KAFKA_BROKERS ?? "").split(",");
  const logger = createLogger("benchmark", "silent");
  const groupLag = createGroupLag(createKafka({ brokers, clientId: "benchmark", requestTimeoutMs: 8_000, logger }));
  const all = Array.from({ length: topic.partitions }, (_, partition) => ({ topic: topic.name, partition }));
  const look = () => {
    bench.signal.throwIfAborted();
    return groupLag.lag(`${name}.${group}`, all);
  };
  await waitFor(`the ${group}`, look, (lag) => lag <= leftCount, { withinMs: 300_000, everyMs: 500 });
  await groupLag.close();
}
