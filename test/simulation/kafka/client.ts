import { createRequire } from "node:module";
import type { Admin, Consumer, ConsumerConfig, Kafka, Producer, ProducerConfig } from "kafkajs";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Broker } from "./broker.ts";
import { SimulatedCluster } from "./cluster.ts";
import { requestTimeout } from "./protocol-errors.ts";

const require = createRequire(import.meta.url);
const createConsumer = require("kafkajs/src/consumer/index.js") as (options: object) => Consumer;
const createProducer = require("kafkajs/src/producer/index.js") as (options: object) => Producer;
const InstrumentationEventEmitter = require("kafkajs/src/instrumentation/emitter.js") as new () => {
  emit(event: string, payload: object): void;
};

const silent = { info() {}, warn() {}, error() {}, debug() {}, namespace: () => silent };

export interface ClientOptions {
  readonly broker: Broker;
  readonly time: VirtualTime;
  readonly process: string;
  readonly requestTimeoutMs: number;
}

/** kafkajs as it is, its consumers and producers, on simulated brokers. */
export function simulatedKafka(options: ClientOptions): Kafka {
  const kafka = {
    consumer: ({ sessionTimeout = 30_000, rebalanceTimeout = 60_000, retry, ...config }: ConsumerConfig): Consumer => {
      const instrumentationEmitter = new InstrumentationEventEmitter();
      return createConsumer({
        ...config,
        sessionTimeout,
        rebalanceTimeout,
        retry: { ...clusterRetry, ...retry },
        logger: silent,
        instrumentationEmitter,
        cluster: clusterOf(options, instrumentationEmitter),
      });
    },
    producer: ({ retry, ...config }: ProducerConfig = {}): Producer => {
      const instrumentationEmitter = new InstrumentationEventEmitter();
      return createProducer({
        ...config,
        retry: { ...clusterRetry, ...retry },
        logger: silent,
        instrumentationEmitter,
        cluster: clusterOf(options, instrumentationEmitter),
      });
    },
    admin: () => simulatedAdmin(options),
  };
  // What the services use of it.
  return kafka as unknown as Kafka;
}

/** As in services/common/kafka/client.ts. */
const clusterRetry = { initialRetryTime: 50, maxRetryTime: 500, retries: 5 };

function clusterOf(options: ClientOptions, emitter: { emit(event: string, payload: object): void }): SimulatedCluster {
  return new SimulatedCluster({ ...options, emit: (event, payload) => emitter.emit(event, payload) });
}

function simulatedAdmin({
  broker,
  requestTimeoutMs,
}: ClientOptions): Pick<Admin, "connect" | "disconnect" | "fetchOffsets" | "fetchTopicOffsets"> {
  const ask = <T>(name: string, work: () => T): Promise<T> =>
    broker.network.request({
      timeoutMs: requestTimeoutMs,
      timeoutError: () => requestTimeout(name),
      serve: (reply) => reply.answer(work()),
    });
  const numbersOf = (topic: string): number[] => Array.from({ length: broker.log.partitionCount(topic) }, (_, number) => number);
  return {
    connect: async () => {},
    disconnect: async () => {},
    fetchOffsets: ({ groupId, topics = [] }) =>
      ask("OffsetFetch", () =>
        topics.map((topic) => ({
          topic,
          partitions: numbersOf(topic).map((partition) => ({
            partition,
            offset: String(broker.group(groupId).committed({ topic, partition }) ?? -1),
            metadata: null,
          })),
        })),
      ),
    fetchTopicOffsets: (topic) =>
      ask("ListOffsets", () =>
        numbersOf(topic).map((partition) => {
          const high = String(broker.log.end({ topic, partition }));
          return { partition, offset: high, high, low: "0" };
        }),
      ),
  };
}
