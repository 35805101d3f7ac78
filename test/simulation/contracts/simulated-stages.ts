import { createProducer } from "../../../services/common/kafka/produce/producer.ts";
import { createLogger } from "../../../services/common/logging/logger.ts";
import { simulatedSession } from "../cassandra/session.ts";
import { Tables } from "../cassandra/tables.ts";
import { Chance } from "../chance.ts";
import { Broker } from "../kafka/broker.ts";
import { simulatedKafka } from "../kafka/client.ts";
import { Log } from "../kafka/log.ts";
import { Network } from "../network.ts";
import { codecFor } from "../replaced/codec.ts";
import { simulatedTopics } from "../simulated-topics.ts";
import { enterWorld, epochMs } from "../time/ambient.ts";
import type { Owner } from "../time/planned-event.ts";
import { VirtualTime } from "../time/virtual-time.ts";
import { codecContract } from "./codec-contract.ts";
import type { Contract } from "./contract.ts";
import { logContract } from "./log-contract.ts";
import { tableContract } from "./table-contract.ts";

export interface ContractResult {
  readonly name: string;
  readonly problem: string | null;
}

/** Every contract, held by what stands for the servers in the simulation. */
export async function checkSimulated(): Promise<ContractResult[]> {
  const time = new VirtualTime();
  const chance = new Chance(1);
  enterWorld({ time, random: chance.random });
  const topics = simulatedTopics({ partitions: { fetch: 3, outcome: 3, other: 3 }, watchdogMs: 3_600_000 });
  const counts = new Map(topics.all.map(({ name, partitions }) => [name, partitions]));
  const log = new Log(counts, () => ({ atMs: time.nowMs, brokerMs: epochMs + time.nowMs }));
  const broker = new Broker({ log, network: new Network(time, chance), nodeCount: 2, time, chance, onCommit: () => {} });
  const kafka = simulatedKafka({ broker, time, process: "contract", requestTimeoutMs: 2_000 });
  const logger = createLogger("contract", "silent");
  const owner: Owner = { name: "contract", alive: true, stoppedUntilMs: 0, skewMs: 0 };
  let number = 0;
  const next = (): number => ++number;
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void time.after(ms, resolve, { owner }));
  const results: ContractResult[] = [];
  const work = async (): Promise<void> => {
    const producer = await createProducer(kafka, { topics, logger, requestTimeoutMs: 2_000 });
    const logStage = { kafka, topics, producer, pause, newGroup: () => `group-${next()}` };
    const cassandra = simulatedSession(new Tables(), new Network(time, chance));
    const codecStage = { topics, codec: codecFor(topics.all.filter(({ schema }) => schema !== null)) };
    for (const contract of logContract) results.push(await outcomeOf(contract, logStage));
    for (const contract of tableContract) results.push(await outcomeOf(contract, { cassandra, number: next }));
    for (const contract of codecContract) results.push(await outcomeOf(contract, codecStage));
  };
  let done = false;
  const end = (): void => {
    done = true;
  };
  time.after(0, () => void work().finally(end), { owner });
  await time.run({ untilMs: 3_600_000, eventCount: 1_000_000 }, () => done);
  return results;
}

async function outcomeOf<S>({ name, holds }: Contract<S>, stage: S): Promise<ContractResult> {
  try {
    await holds(stage);
    return { name, problem: null };
  } catch (error) {
    return { name, problem: error instanceof Error ? error.message : String(error) };
  }
}
