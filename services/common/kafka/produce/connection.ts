import type { Kafka, Producer } from "kafkajs";
import { type CallOptions, type CallPart, type CallResult, produceCall } from "./call.ts";

/** One late answer is a slow broker, two in a row are a connection that nobody listens to: a new one is made. */
const lateCallsOfADeadConnection = 2;

/** The kafkajs producer: connected again, or made anew, by the next call. */
export class ProduceConnection {
  readonly #kafka: Kafka;
  #producer: Producer | undefined;
  #lateCallCount = 0;

  constructor(kafka: Kafka) {
    this.#kafka = kafka;
  }

  /** Rejects when no broker can be reached. */
  async connect(): Promise<Producer> {
    if (this.#producer !== undefined) return this.#producer;
    const producer = this.#kafka.producer({
      // Topics are made by provisioning alone, with their partition counts.
      allowAutoTopicCreation: false,
      // kafkajs looks for leaders after every error. By age it must not: it fails as long as one partition of any topic has none.
      metadataMaxAge: 24 * 3_600_000,
      // The queue tries again, and asks before each try.
      retry: { retries: 0, initialRetryTime: 30 },
      createPartitioner: () => chosenPartition,
    });
    await producer.connect();
    this.#producer = producer;
    return producer;
  }

  /** Never rejects. Only one call at a time. */
  async call<P extends CallPart>(parts: readonly P[], options: CallOptions<P>): Promise<CallResult> {
    try {
      const result = await produceCall(await this.connect(), parts, options);
      this.#lateCallCount = isLate(result.error) ? this.#lateCallCount + 1 : 0;
      if (result.stuck || this.#lateCallCount >= lateCallsOfADeadConnection) this.#drop();
      return result;
    } catch (error) {
      return { answers: parts.map(() => ({ state: "kept", recalled: false })), error, stuck: false };
    }
  }

  async disconnect(): Promise<void> {
    await this.#producer?.disconnect();
    this.#producer = undefined;
  }

  #drop(): void {
    const dead = this.#producer;
    this.#producer = undefined;
    this.#lateCallCount = 0;
    // It waits for answers that may never come; nothing depends on it.
    dead?.disconnect().catch(() => undefined);
  }
}

function chosenPartition({ message }: { message: { partition?: number } }): number {
  if (message.partition === undefined) throw new Error("a record was given to kafkajs without its partition");
  return message.partition;
}

/** kafkajs wraps what it does not try again. */
function isLate(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "KafkaJSRequestTimeoutError" || isLate(error.cause);
}
