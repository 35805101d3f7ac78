import { writeRefreshRows } from "../../services/common/cassandra/refresh-rows.ts";
import { microsFromMs } from "../../services/common/clock.ts";
import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import type { Topics } from "../../services/common/kafka/topics.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import { simulatedSession } from "./cassandra/session.ts";
import { Tables } from "./cassandra/tables.ts";
import { Chance } from "./chance.ts";
import type { Defect } from "./defects.ts";
import { Faults } from "./faults.ts";
import { Broker } from "./kafka/broker.ts";
import { simulatedKafka } from "./kafka/client.ts";
import { Log } from "./kafka/log.ts";
import { Ledger } from "./ledger/ledger.ts";
import { MetadataHosts } from "./metadata-hosts.ts";
import { fineWeather, Network } from "./network.ts";
import { Population } from "./population.ts";
import { codecFor } from "./replaced/codec.ts";
import { simulatedTopics } from "./simulated-topics.ts";
import { enterSurroundings } from "./surroundings.ts";
import { enterWorld, epochMs } from "./time/ambient.ts";
import { VirtualTime } from "./time/virtual-time.ts";
import type { Trace } from "./trace.ts";
import { planWorld, type WorldPlan } from "./world-plan.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly defect?: Defect | undefined;
  readonly trace?: Trace;
}

export interface WorldReport {
  readonly eventCount: number;
  readonly callCount: number;
  readonly virtualMs: number;
}

/** Everything has to be over by then: the deadline of a refresh, the watchdog's hour, and some. */
const endMs = 50 * 3_600_000;
const mostEvents = 200_000;

/** One world from its seed to its rest. Rejects with the first promise that it breaks. */
export async function runWorld({ seed, defect, trace }: WorldOptions): Promise<WorldReport> {
  const chance = new Chance(seed);
  const plan = planWorld(chance);
  const time = new VirtualTime();
  enterWorld({ time, random: chance.fork().random });
  const topics = simulatedTopics(plan);
  const counts = new Map(topics.all.map(({ name, partitions }) => [name, partitions]));
  const log = new Log(counts, () => ({ atMs: time.nowMs, brokerMs: epochMs + time.nowMs + plan.brokerSkewMs }));
  log.damage = damageOf(plan, topics, chance.fork());
  const networks = { kafka: new Network(time, chance.fork()), cassandra: new Network(time, chance.fork()) };
  const tables = new Tables();
  const broker: Broker = new Broker({
    log,
    network: networks.kafka,
    nodeCount: plan.nodeCount,
    time,
    chance: chance.fork(),
    onCommit: (group, partition, from, to) => ledger.commits.committed(group, partition, { from, to }),
  });
  const hosts = new MetadataHosts(plan, { time, seed });
  const ledger: Ledger = new Ledger({ plan, topics, log, tables, hosts, time, broker });
  enterSurroundings({
    topics,
    kafka: (requestTimeoutMs) => simulatedKafka({ broker, time, process: time.owner?.name ?? "nobody", requestTimeoutMs }),
    cassandra: () => simulatedSession(tables, networks.cassandra),
    call: (call) => hosts.call(call),
    spoil: defect?.spoil ?? {},
  });
  trace?.follow({ time, log, topics, hosts });
  const population = new Population({ plan, time, ledger, trace });
  const faults = new Faults({ plan, time, log, topics, broker, networks, population, ledger, trace, chance: chance.fork() });
  registerTokens(plan, tables);
  for (const refresh of plan.refreshes) time.at(refresh.atMs, () => accept(refresh, { topics, log, tables }));
  population.start();
  faults.plan();
  await time.run({ untilMs: endMs, eventCount: mostEvents }, () => ledger.broken !== undefined);
  networks.kafka.weather = fineWeather;
  if (ledger.broken === undefined) ledger.close();
  if (ledger.broken !== undefined) throw new Error(ledger.broken);
  return { eventCount: time.eventCount, callCount: hosts.calls.length, virtualMs: time.nowMs };
}

function registerTokens({ projects }: WorldPlan, tables: Tables): void {
  const query = "INSERT INTO tokens (collection_address, bucket, token_id, registered_at) VALUES (?, ?, ?, ?)";
  const nowMicros = microsFromMs(epochMs - 1_000);
  for (const { collection, registered } of projects) {
    for (const token of registered) tables.write(query, [collection, bucketOf(token), token, nowMicros], nowMicros);
  }
}

/** What ingress does: publish, then the rows. */
function accept(
  { record, withoutRows }: WorldPlan["refreshes"][number],
  { topics, log, tables }: { topics: Topics; log: Log; tables: Tables },
): void {
  const { name, partitions } = topics.refreshRequested;
  const key = record.refresh_id;
  const value = codecFor([topics.refreshRequested]).encode(name, record);
  log.append({ topic: name, partition: partitionOf(key, partitions) }, [{ key: Buffer.from(key), value, headers: {} }]);
  if (withoutRows) return;
  const write = async (query: string, params: readonly unknown[]): Promise<void> => tables.write(query, params, 0);
  void writeRefreshRows({ write }, record, { retentionSeconds: 90 * 86_400, nowMs: record.requested_at / 1_000 });
}

/** Some of what fetcher and aggregator are to read cannot be read: the watchdog has to find out. */
function damageOf({ damagedShare }: WorldPlan, topics: Topics, chance: Chance): Log["damage"] {
  const damaged = new Set([topics.tokenRequested, topics.tokenOutcome, ...topics.retryTiers].map(({ name }) => name));
  return (topic, record) => {
    if (!damaged.has(topic) || !chance.happens(damagedShare)) return record;
    return { ...record, value: Buffer.from("damaged") };
  };
}
