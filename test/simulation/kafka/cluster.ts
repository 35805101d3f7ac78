import { AssignerProtocol } from "kafkajs";
import { carried } from "../../../services/common/kafka/produce/request-patch.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Broker } from "./broker.ts";
import { connectionClosed, requestTimeout } from "./protocol-errors.ts";
import { readRecord } from "./record-reading.ts";
import type {
  CommitRequest,
  FetchAnswer,
  FetchRequest,
  JoinGroupRequest,
  OffsetFetchRequest,
  ProduceAnswer,
  ProduceRequest,
  SyncGroupRequest,
} from "./requests.ts";

export interface ClusterOptions {
  readonly broker: Broker;
  readonly time: VirtualTime;
  readonly process: string;
  readonly requestTimeoutMs: number;
  /** kafkajs' emitter: tells of every answered request. */
  readonly emit: (event: string, payload: Record<string, unknown>) => void;
}

/** What kafkajs sees of the brokers: the class `Cluster`, down to the requests. */
export class SimulatedCluster {
  readonly targetTopics = new Set<string>();
  readonly retry = {};
  readonly #broker: Broker;
  readonly #nodes: readonly SimulatedNode[];
  readonly #committed: Record<string, Record<string, Record<number, string>>> = {};
  readonly #metadata = new Map<string, { partitionId: number; leader: number }[]>();
  #connected = false;

  constructor(options: ClusterOptions) {
    this.#broker = options.broker;
    this.#nodes = Array.from({ length: options.broker.nodeCount }, (_, index) => new SimulatedNode(index + 1, options));
  }

  async connect(): Promise<void> {
    this.#connected = true;
  }

  async disconnect(): Promise<void> {
    this.#connected = false;
  }

  isConnected(): boolean {
    return this.#connected;
  }

  async addMultipleTargetTopics(topics: readonly string[]): Promise<void> {
    for (const topic of topics) this.targetTopics.add(topic);
  }

  async refreshMetadata(): Promise<void> {}

  async refreshMetadataIfNecessary(): Promise<void> {}

  removeBroker(): void {}

  getNodeIds(): number[] {
    return this.#nodes.map(({ nodeId }) => nodeId);
  }

  async findBroker({ nodeId }: { nodeId: number | string }): Promise<SimulatedNode> {
    const node = this.#nodes[Number(nodeId) - 1];
    if (node === undefined) throw new Error(`there is no node ${nodeId}`);
    return node;
  }

  async findGroupCoordinator(): Promise<SimulatedNode> {
    return this.findBroker({ nodeId: 1 });
  }

  findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number }[] {
    const known = this.#metadata.get(topic);
    if (known !== undefined) return known;
    const count = this.#broker.log.partitionCount(topic);
    const all = Array.from({ length: count }, (_, partitionId) => ({ partitionId, leader: this.#broker.nodeOf(partitionId) }));
    this.#metadata.set(topic, all);
    return all;
  }

  findLeaderForPartitions(_topic: string, partitions: readonly (number | string)[]): Record<number, number[]> {
    const byLeader: Record<number, number[]> = {};
    for (const partition of partitions.map(Number)) {
      const leader = this.#broker.nodeOf(partition);
      byLeader[leader] = [...(byLeader[leader] ?? []), partition];
    }
    return byLeader;
  }

  committedOffsets({ groupId }: { groupId: string }): Record<string, Record<number, string>> {
    this.#committed[groupId] ??= {};
    return this.#committed[groupId];
  }

  defaultOffset({ fromBeginning }: { fromBeginning: boolean }): string {
    return fromBeginning ? "-2" : "-1";
  }

  /** kafkajs asks it where nothing is committed. */
  async fetchTopicsOffset(
    topics: readonly { topic: string; partitions: readonly { partition: number }[]; fromBeginning?: boolean }[],
  ): Promise<{ topic: string; partitions: { partition: number; offset: string }[] }[]> {
    return topics.map(({ topic, partitions, fromBeginning }) => ({
      topic,
      partitions: partitions.map(({ partition }) => ({
        partition,
        offset: fromBeginning ? "0" : String(this.#broker.log.end({ topic, partition })),
      })),
    }));
  }
}

const emptyAssignment = AssignerProtocol.MemberAssignment.encode({ version: 0, assignment: {}, userData: Buffer.alloc(0) });

/** One broker, for the requests that kafkajs' consumers and producers make of it. */
class SimulatedNode {
  readonly nodeId: number;
  readonly #options: ClusterOptions;

  constructor(nodeId: number, options: ClusterOptions) {
    this.nodeId = nodeId;
    this.#options = options;
  }

  isConnected(): boolean {
    return true;
  }

  joinGroup(request: JoinGroupRequest): Promise<unknown> {
    const { groupId, memberId, sessionTimeout, rebalanceTimeout, groupProtocols } = request;
    const join = {
      memberId,
      process: this.#options.process,
      metadata: groupProtocols[0]?.metadata ?? Buffer.alloc(0),
      sessionTimeoutMs: sessionTimeout,
      rebalanceTimeoutMs: rebalanceTimeout,
    };
    const patienceMs = rebalanceTimeout + this.#options.requestTimeoutMs;
    return this.#ask("JoinGroup", (reply) => this.#options.broker.group(groupId).join(join, reply), { patienceMs });
  }

  async syncGroup(request: SyncGroupRequest): Promise<{ memberAssignment: Buffer }> {
    const { groupId, memberId, generationId, groupAssignment } = request;
    const assignments = new Map(groupAssignment.map((entry) => [entry.memberId, entry.memberAssignment]));
    const who = { memberId, generationId, assignments };
    const patienceMs = 30_000;
    const given = await this.#ask<Buffer>("SyncGroup", (reply) => this.#options.broker.group(groupId).sync(who, reply), {
      patienceMs,
    });
    return { memberAssignment: given.length === 0 ? emptyAssignment : given };
  }

  async heartbeat(request: { groupId: string; memberId: string; groupGenerationId: number }): Promise<void> {
    const { groupId, memberId, groupGenerationId: generationId } = request;
    await this.#do("Heartbeat", () => this.#options.broker.group(groupId).heartbeat({ memberId, generationId }), {
      background: true,
    });
  }

  async leaveGroup({ groupId, memberId }: { groupId: string; memberId: string }): Promise<void> {
    await this.#do("LeaveGroup", () => this.#options.broker.group(groupId).leave(memberId));
  }

  async offsetCommit({ groupId, memberId, groupGenerationId: generationId, topics }: CommitRequest): Promise<void> {
    const offsets = topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, offset }) => [{ topic, partition }, Number(offset)] as const),
    );
    await this.#do("OffsetCommit", () => this.#options.broker.group(groupId).commit({ memberId, generationId }, offsets));
  }

  async offsetFetch({ groupId, topics }: OffsetFetchRequest): Promise<unknown> {
    return this.#do("OffsetFetch", () => ({
      responses: topics.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map(({ partition }) => ({
          partition,
          offset: String(this.#options.broker.group(groupId).committed({ topic, partition }) ?? -1),
        })),
      })),
    }));
  }

  async fetch({ topics }: FetchRequest): Promise<FetchAnswer> {
    const positions = topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, fetchOffset }) => ({ topic, partition, offset: Number(fetchOffset) })),
    );
    const fetched = await this.#ask<
      readonly { topic: string; partition: number; highWatermark: number; records: readonly Stored[] }[]
    >("Fetch", (reply) => this.#options.broker.fetch(positions, reply), { background: true });
    const byTopic = Map.groupBy(fetched, ({ topic }) => topic);
    return {
      responses: [...byTopic].map(([topicName, partitions]) => ({
        topicName,
        partitions: partitions.map(({ partition, highWatermark, records }) => ({
          partition,
          highWatermark: String(highWatermark),
          abortedTransactions: [],
          messages: records.map(({ offset, timestampMs, key, value, headers }) => ({
            offset: String(offset),
            timestamp: String(timestampMs),
            key,
            value,
            headers,
            isControlRecord: false,
          })),
        })),
      })),
    };
  }

  produce(request: ProduceRequest): Promise<ProduceAnswer> {
    const observer = request.topicData[0]?.partitions[0]?.messages[0]?.[carried]?.observer;
    const write = (): Promise<ProduceAnswer> => this.#do("Produce", () => this.#append(request), { mayBreak: true });
    return observer === undefined ? write() : observer.observe(request, write);
  }

  #append({ topicData }: ProduceRequest): ProduceAnswer {
    const { log } = this.#options.broker;
    const topics = topicData.map(({ topic, partitions }) => ({
      topicName: topic,
      partitions: partitions.map(({ partition, messages }) => {
        const records = messages.flatMap((message) => message[carried]?.records ?? []).map(readRecord);
        const { baseOffset, timestampMs } = log.append({ topic, partition }, records);
        return { partition, errorCode: 0, baseOffset: String(baseOffset), logAppendTime: String(timestampMs) };
      }),
    }));
    return { topics };
  }

  #do<T>(apiName: string, work: () => T, options: AskOptions = {}): Promise<T> {
    return this.#ask<T>(
      apiName,
      (reply) => {
        try {
          reply.answer(work(), { background: options.background ?? false });
        } catch (error) {
          reply.refuse(error as Error);
        }
      },
      options,
    );
  }

  async #ask<T>(
    apiName: string,
    serve: (reply: { answer(value: T, how?: { background?: boolean }): void; refuse(error: Error): void }) => void,
    { background = false, patienceMs = this.#options.requestTimeoutMs, mayBreak = false }: AskOptions = {},
  ): Promise<T> {
    const sentAt = Date.now();
    const timeoutError = (): Error => (mayBreak && Math.random() < 0.3 ? connectionClosed() : requestTimeout(apiName));
    const told = (): void => this.#options.emit("network.request", { apiName, sentAt, broker: "simulated" });
    try {
      const answer = await this.#options.broker.network.request<T>({ timeoutMs: patienceMs, timeoutError, background, serve });
      told();
      return answer;
    } catch (error) {
      // An answer that says no is an answer.
      if (error instanceof Error && error.name === "KafkaJSProtocolError") told();
      throw error;
    }
  }
}

interface AskOptions {
  readonly background?: boolean;
  readonly patienceMs?: number;
  /** A connection that breaks looks otherwise than a silent one. */
  readonly mayBreak?: boolean;
}

type Stored = {
  readonly offset: number;
  readonly timestampMs: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, Buffer>>;
};
