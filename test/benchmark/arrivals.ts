import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Consumer, Kafka, logLevel } from "kafkajs";
import { patchIdleTimer } from "../../services/common/kafka/idle-timer.ts";
import type { TopicDefinition } from "../../services/common/kafka/topics.ts";

export interface ArrivalWait {
  readonly withinMs: number;
  readonly signal: AbortSignal;
  /** Added to the error when it takes too long. */
  readonly explain?: () => string;
}

/** When the first record of each key came to a consumer, without a look at its value: a watcher must not weigh on what it watches. */
export class ArrivalWatch {
  readonly #consumer: Consumer;
  /** On the clock of `performance.now()`. */
  readonly #atMs = new Map<string, number>();
  readonly #waiting = new Map<string, (atMs: number) => void>();

  static async start(environment: Readonly<Record<string, string>>, topic: TopicDefinition): Promise<ArrivalWatch> {
    patchIdleTimer();
    const brokers = (environment.KAFKA_BROKERS ?? "").split(",");
    const kafka = new Kafka({ brokers, clientId: "benchmark", logLevel: logLevel.NOTHING });
    const watch = new ArrivalWatch(kafka.consumer({ groupId: `benchmark-${randomUUID()}`, maxWaitTimeInMs: 500 }));
    await watch.#begin(topic);
    return watch;
  }

  private constructor(consumer: Consumer) {
    this.#consumer = consumer;
  }

  get count(): number {
    return this.#atMs.size;
  }

  /** Rejects when it has not come in time. */
  async of(key: string, { withinMs, signal, explain }: ArrivalWait): Promise<number> {
    const known = this.#atMs.get(key);
    if (known !== undefined) return known;
    const patience = new AbortController();
    const tooLate = sleep(withinMs, undefined, { signal: AbortSignal.any([signal, patience.signal]) }).then(() => {
      throw new Error(`${key} has not come within ${withinMs} ms\n${explain?.() ?? ""}`);
    });
    try {
      return await Promise.race([new Promise<number>((resolve) => this.#waiting.set(key, resolve)), tooLate]);
    } finally {
      patience.abort();
      tooLate.catch(() => undefined);
      this.#waiting.delete(key);
    }
  }

  /** When the last of them came. */
  async allOf(keys: readonly string[], wait: ArrivalWait): Promise<number> {
    return Math.max(...(await Promise.all(keys.map((key) => this.of(key, wait)))));
  }

  close(): Promise<void> {
    return this.#consumer.disconnect();
  }

  async #begin(topic: TopicDefinition): Promise<void> {
    const joined = new Promise<void>((resolve) => this.#consumer.on(this.#consumer.events.GROUP_JOIN, () => resolve()));
    await this.#consumer.connect();
    await this.#consumer.subscribe({ topic: topic.name, fromBeginning: true });
    await this.#consumer.run({
      autoCommit: false,
      partitionsConsumedConcurrently: topic.partitions,
      eachBatch: async ({ batch }) => {
        const nowMs = performance.now();
        for (const { key } of batch.messages) this.#take(String(key), nowMs);
      },
    });
    await joined;
  }

  #take(key: string, atMs: number): void {
    if (this.#atMs.has(key)) return;
    this.#atMs.set(key, atMs);
    this.#waiting.get(key)?.(atMs);
  }
}
