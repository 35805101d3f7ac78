import { partitionOf } from "../../services/common/kafka/partitioning.ts";
import type { TopicDefinition, Topics } from "../../services/common/kafka/topics.ts";
import type { Chance } from "./chance.ts";
import type { Broker } from "./kafka/broker.ts";
import type { Log } from "./kafka/log.ts";
import type { Ledger } from "./ledger/ledger.ts";
import { fineWeather, type Network } from "./network.ts";
import type { Population } from "./population.ts";
import { SimulatedProcess } from "./process.ts";
import type { Owner } from "./time/planned-event.ts";
import type { VirtualTime } from "./time/virtual-time.ts";
import type { Trace } from "./trace.ts";
import type { DuplicableTopic, Fault, WorldPlan } from "./world-plan.ts";

interface FaultOptions {
  readonly plan: WorldPlan;
  readonly time: VirtualTime;
  readonly log: Log;
  readonly topics: Topics;
  readonly broker: Broker;
  readonly networks: { readonly kafka: Network; readonly cassandra: Network };
  readonly population: Population;
  readonly ledger: Ledger;
  readonly trace: Trace | undefined;
  readonly chance: Chance;
}

/** Lets the planned faults happen. */
export class Faults {
  readonly #options: FaultOptions;

  constructor(options: FaultOptions) {
    this.#options = options;
  }

  plan(): void {
    const { plan, time, networks } = this.#options;
    const waiting = new Set(plan.faults.filter(({ afterRequests }) => afterRequests !== undefined));
    for (const { atMs, afterRequests, fault } of plan.faults)
      if (afterRequests === undefined) time.at(atMs, () => this.#strike(fault));
    const served = new Map<string, number>();
    const onServed = (asker: Owner | undefined): void => {
      const service = asker?.name.replace(/-.*/, "") ?? "";
      const count = (served.get(service) ?? 0) + 1;
      served.set(service, count);
      for (const planned of waiting) {
        if (planned.afterRequests?.service !== service || planned.afterRequests.count > count) continue;
        waiting.delete(planned);
        this.#strike(planned.fault, asker);
      }
    };
    networks.kafka.onServed = onServed;
    networks.cassandra.onServed = onServed;
  }

  #strike(fault: Fault, process?: Owner): void {
    this.#options.trace?.note("world", "fault", fault);
    this.#happen(fault, process);
  }

  #happen(fault: Fault, asker: Owner | undefined): void {
    if (fault.kind === "weather") this.#change(fault);
    else if (fault.kind === "duplicate") this.#duplicate(this.#topic(fault.role, fault.draw), fault.draw);
    else if (fault.kind === "garbage") this.#litter(this.#topic(fault.role, fault.draw), fault.draw);
    else if (fault.kind === "rewind") this.#rewind(fault);
    else if (fault.kind === "join") this.#options.population.join(fault.service);
    else this.#hit(fault, asker);
  }

  #hit(fault: Extract<Fault, { kind: "kill" | "freeze" | "restart" }>, asker: Owner | undefined): void {
    const { population } = this.#options;
    const process = asker instanceof SimulatedProcess && asker.alive ? asker : population.find(fault.service, fault.number);
    if (process === undefined) return;
    if (fault.kind === "kill") population.kill(process, fault.awayMs);
    else if (fault.kind === "restart") population.restart(process, fault.awayMs);
    else population.freeze(process, fault.forMs);
  }

  #change({ of, weather, forMs }: Extract<Fault, { kind: "weather" }>): void {
    const { networks, time, ledger } = this.#options;
    for (const service of ["splitter", "fetcher", "aggregator"] as const) ledger.disturbed(service);
    networks[of].weather = weather;
    time.after(forMs, () => {
      networks[of].weather = fineWeather;
    });
  }

  /** The same record once more: a produce that was tried again. */
  #duplicate({ name }: TopicDefinition, draw: number): void {
    const { log, ledger } = this.#options;
    const records = log.all(name);
    const record = records[draw % Math.max(1, records.length)];
    if (record === undefined) return;
    ledger.disturbed("fetcher");
    const { topic, partition, key, value, headers } = record;
    log.append({ topic, partition }, [{ key, value, headers }]);
  }

  /** What no service of ours has written. */
  #litter({ name, partitions }: TopicDefinition, draw: number): void {
    const { log, chance } = this.#options;
    const bytes = Buffer.from(Array.from({ length: chance.between(0, 30) }, () => chance.between(0, 255)));
    const value = chance.happens(0.2) ? null : bytes;
    const key = chance.happens(0.2) ? null : Buffer.from(`litter-${draw}`);
    log.append({ topic: name, partition: partitionOf(String(draw), partitions) }, [{ key, value, headers: {} }]);
  }

  /** Committed offsets go back, and every member of the group is killed: all is read again from there. */
  #rewind({ service, back }: Extract<Fault, { kind: "rewind" }>): void {
    const { broker, topics, population, ledger } = this.#options;
    const group = broker.group(`simulated.${service}`);
    const consumed = {
      splitter: [topics.refreshRequested, topics.watchdog],
      fetcher: [topics.tokenRequested, ...topics.retryTiers],
      aggregator: [topics.tokenOutcome],
    }[service];
    for (const { name, partitions } of consumed) {
      for (let partition = 0; partition < partitions; partition += 1) {
        const committed = group.committed({ topic: name, partition });
        if (committed !== undefined) group.rewind({ topic: name, partition }, Math.max(0, committed - back));
      }
    }
    ledger.rewound(service);
    for (let number = 0; number < 4; number += 1) {
      const process = population.find(service, number);
      if (process !== undefined) population.kill(process, 100);
    }
  }

  #topic(role: DuplicableTopic, draw: number): TopicDefinition {
    const { topics } = this.#options;
    if (role !== "retryTier") return topics[role];
    const tier = topics.retryTiers[draw % topics.retryTiers.length];
    return tier ?? topics.tokenRequested;
  }
}
