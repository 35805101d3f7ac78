import type { Kafka } from "kafkajs";
import { AbandonedError, messageOf } from "../../errors.ts";
import type { Logger } from "../../logging/logger.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { connectionTimeoutMs } from "../client.ts";
import type { OutgoingRecord, RecordProducer, SendResult } from "../contracts.ts";
import { partitionOf } from "../partitioning.ts";
import type { TopicDefinition, Topics } from "../topics.ts";
import { ProduceConnection } from "./connection.ts";
import { type Delivered, Delivery, type Entry, type Failure, notSent } from "./delivery.ts";
import { type ProducerMetrics, producerMetrics } from "./metrics.ts";
import { outcomeOf, type PartOutcome } from "./outcome.ts";
import { type Part, ProduceQueue } from "./queue.ts";
import { batchOverheadBytes, encodeRecord, recordBytes } from "./record-batch.ts";

export interface ProducerOptions {
  readonly topics: Topics;
  readonly logger: Logger;
  /** As given to `createKafka`. */
  readonly requestTimeoutMs: number;
  readonly metrics?: Metrics;
}

/** A refresh of 1000 tokens goes in one call, with its check; bodies of 256 KiB must not add up. */
const callLimits = { recordCount: 2_000, bytes: 8 * 1024 * 1024, partitionBytes: 512 * 1024 };
/** With more than this waiting `send` refuses at once, for it has somebody waiting; what delivers waits with its records. */
const sendLimitBytes = 64 * 1024 * 1024;

/**
 * A connected producer: plain, all acknowledgements, one call at a time; what waits meanwhile is coalesced into the next. The
 * partition follows from the key and the count in deploy/topics.yaml. Rejects when no broker can be reached.
 */
export async function createProducer(kafka: Kafka, options: ProducerOptions): Promise<RecordProducer> {
  const connection = new ProduceConnection(kafka);
  await connection.connect();
  return new CoalescingProducer(connection, options);
}

class CoalescingProducer implements RecordProducer {
  readonly #connection: ProduceConnection;
  readonly #logger: Logger;
  readonly #requestTimeoutMs: number;
  readonly #definitions: ReadonlyMap<string, TopicDefinition>;
  readonly #metrics: ProducerMetrics | undefined;
  readonly #queue = new ProduceQueue<Entry>(callLimits);
  #running: Promise<void> | undefined;
  /** The records of the call under way. */
  #called: readonly Entry[] = [];
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(connection: ProduceConnection, { topics, logger, requestTimeoutMs, metrics }: ProducerOptions) {
    this.#connection = connection;
    this.#logger = logger;
    this.#requestTimeoutMs = requestTimeoutMs;
    this.#definitions = new Map(topics.all.map((topic) => [topic.name, topic]));
    this.#metrics = metrics === undefined ? undefined : producerMetrics(metrics, topics);
    this.#metrics?.queues.add(this.#queue);
  }

  send(record: OutgoingRecord, timeoutMs: number): Promise<SendResult> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const entry = this.#entry(record, undefined, (result) => {
        clearTimeout(timer);
        resolve(result);
      });
      if (this.#closed) return this.#end(entry, notSent("the producer is closed"));
      if (this.#queue.bytes > sendLimitBytes) return this.#end(entry, notSent("too much waits to be sent already"));
      timer = setTimeout(() => this.#expire(entry, timeoutMs), timeoutMs);
      this.#add(entry);
    });
  }

  deliver(
    records: readonly OutgoingRecord[],
    { signal, mayAct = () => true }: { signal?: AbortSignal; mayAct?: () => boolean } = {},
  ): Promise<readonly Delivered[]> {
    try {
      if (this.#closed || signal?.aborted) throw new AbandonedError("the delivery was given up before it began");
      const delivery = this.#delivery(records, mayAct);
      for (const entry of delivery.entries) this.#add(entry);
      return signal === undefined ? delivery.settled : this.#abandonable(delivery, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #abandonable(delivery: Delivery, signal: AbortSignal): Promise<readonly Delivered[]> {
    const abandon = () => this.#abandon(delivery);
    signal.addEventListener("abort", abandon, { once: true });
    return delivery.settled.finally(() => signal.removeEventListener("abort", abandon));
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#dismiss(this.#called.filter(({ written, done }) => !written && !done));
    // What is on a connection is waited for; kafkajs looking for a broker, for many seconds if it finds none, is not.
    if (this.#called.some(({ written }) => written)) await this.#running;
    this.#dismiss(this.#queue.drain());
    this.#metrics?.queues.delete(this.#queue);
    await this.#connection.disconnect();
  }

  #dismiss(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.delivery === undefined) this.#end(entry, notSent("the producer is closed"));
      else this.#giveUp(entry, entry.delivery);
    }
  }

  /** All entries are made before the first is queued: an unknown topic in the middle must not leave half a delivery behind. */
  #delivery(records: readonly OutgoingRecord[], mayAct: () => boolean): Delivery {
    const delivery = new Delivery(records.length, mayAct);
    for (const [index, record] of records.entries()) {
      const end = (result: SendResult) => delivery.settle(index, result as Delivered);
      delivery.entries.push(this.#entry(record, delivery, end));
    }
    return delivery;
  }

  #entry(record: OutgoingRecord, delivery: Delivery | undefined, end: Entry["end"]): Entry {
    const definition = this.#definitions.get(record.topic);
    if (definition === undefined) throw new Error(`deploy/topics.yaml has no topic ${record.topic}`);
    const partition = partitionOf(record.key, definition.partitions);
    const encoded = encodeRecord(record);
    return {
      topic: record.topic,
      partition,
      bytes: recordBytes(encoded),
      baseTopic: definition.baseName,
      maxBytes: definition.maxMessageBytes,
      encoded,
      delivery,
      end,
      waiting: false,
      done: false,
      written: false,
    };
  }

  #add(entry: Entry): void {
    const batchBytes = batchOverheadBytes + entry.bytes;
    if (batchBytes <= entry.maxBytes) {
      this.#queue.add(entry);
      this.#wake();
    } else {
      const message = `${batchBytes} bytes are above the ${entry.maxBytes} that ${entry.baseTopic} takes`;
      this.#end(entry, { ok: false, reason: "too_large", message });
    }
  }

  /** The time of a `send` is over. */
  #expire(entry: Entry, timeoutMs: number): void {
    if (entry.written) this.#end(entry, { ok: false, reason: "unknown", message: `sent, and not answered in ${timeoutMs} ms` });
    else this.#end(entry, notSent(`it could not be sent in ${timeoutMs} ms`));
    this.#rest();
  }

  /** A record that is on a connection cannot be taken back: its delivery ends when it is answered. */
  #abandon(delivery: Delivery): void {
    delivery.abandoned = true;
    for (const entry of delivery.entries) if (!entry.done && !entry.written) this.#giveUp(entry, delivery);
    this.#rest();
  }

  #giveUp(entry: Entry, delivery: Delivery): void {
    this.#queue.withdraw(entry);
    delivery.giveUp();
  }

  #end(entry: Entry, result: Failure): void {
    if (entry.done) return;
    this.#queue.withdraw(entry);
    this.#metrics?.records.inc({ topic: entry.baseTopic, result: result.reason });
    entry.end(result);
  }

  #wake(): void {
    if (this.#running !== undefined || this.#closed) return;
    clearTimeout(this.#timer);
    // Not before the caller's turn is over: what it submits in one go leaves in one call.
    this.#running = Promise.resolve()
      .then(() => this.#run())
      .finally(() => {
        this.#running = undefined;
        this.#rest();
      });
  }

  /** Sleeps until the first line has rested, for ever when nothing waits. */
  #rest(): void {
    if (this.#running !== undefined || this.#closed) return;
    clearTimeout(this.#timer);
    const nextMs = this.#queue.nextMs();
    if (nextMs !== undefined) this.#timer = setTimeout(() => this.#wake(), Math.max(0, nextMs - performance.now()));
  }

  /** One call after the other while there is something that may go: the order within a partition rests on it. */
  async #run(): Promise<void> {
    while (!this.#closed) {
      const parts = this.#queue.take(performance.now());
      if (parts.length === 0) return;
      if (this.#mayGo(parts)) await this.#call(parts);
      else for (const part of parts) this.#queue.putBack(part);
    }
  }

  /** Abandons the deliveries that may not act any more. False when a record of the parts is not wanted any more. */
  #mayGo(parts: readonly Part<Entry>[]): boolean {
    if (this.#closed) return false;
    const deliveries = new Set(parts.flatMap(({ records }) => records.map(({ delivery }) => delivery)));
    for (const delivery of deliveries) if (delivery !== undefined && !delivery.mayAct()) this.#abandon(delivery);
    return parts.every(({ records }) => records.every(({ done }) => !done));
  }

  async #call(parts: readonly Part<Entry>[]): Promise<void> {
    const startedMs = performance.now();
    this.#called = parts.flatMap(({ records }) => records);
    const given = parts.map((part) => ({ ...part, part, records: part.records.map(({ encoded }) => encoded) }));
    const { answers, error } = await this.#connection.call(given, {
      ackTimeoutMs: Math.floor(0.75 * this.#requestTimeoutMs),
      stuckAfterMs: connectionTimeoutMs + 3 * this.#requestTimeoutMs,
      // Time has passed since #run asked: kafkajs may have been connecting, and a lease may have ended meanwhile.
      mayLeave: (leaving) => {
        const leavingParts = leaving.map(({ part }) => part);
        const may = this.#mayGo(leavingParts);
        if (may) for (const { records } of leavingParts) for (const entry of records) entry.written = true;
        return may;
      },
    });
    const reason = error === undefined ? "the broker has no such partition" : messageOf(error);
    const outcomes = answers.map((answer) => outcomeOf(answer, reason));
    for (const [index, part] of parts.entries()) this.#apply(part, outcomes[index] ?? { kind: "unknown", message: reason });
    this.#called = [];
    this.#report(parts, outcomes, performance.now() - startedMs);
  }

  #apply(part: Part<Entry>, outcome: PartOutcome): void {
    if (outcome.kind !== "acknowledged") this.#giveUpAbandoned(part);
    if (outcome.kind === "acknowledged") this.#acknowledge(part, outcome);
    else if (outcome.kind === "recalled") this.#queue.putBack(part);
    else if (outcome.kind === "too_large") this.#narrow(part, outcome.message);
    else this.#tryAgain(part, outcome);
  }

  #giveUpAbandoned(part: Part<Entry>): void {
    for (const entry of part.records) {
      entry.written = false;
      if (entry.delivery?.abandoned === true && !entry.done) this.#giveUp(entry, entry.delivery);
    }
  }

  /** The broker numbers the records of a batch one after the other, as they stand in it. */
  #acknowledge(part: Part<Entry>, { baseOffset, appendTimeMs }: Extract<PartOutcome, { kind: "acknowledged" }>): void {
    this.#queue.taken(part);
    let topic = "";
    let count = 0;
    for (const [index, entry] of part.records.entries()) {
      // A `send` whose time was over has been told that it is unknown.
      if (entry.done) continue;
      entry.done = true;
      entry.end({ ok: true, partition: part.partition, offset: baseOffset + index, appendTimeMs });
      topic = entry.baseTopic;
      count += 1;
    }
    if (count > 0) this.#metrics?.records.inc({ topic, result: "acknowledged" }, count);
  }

  #narrow(part: Part<Entry>, message: string): void {
    const culprit = this.#queue.tooLarge(part);
    if (culprit !== undefined) this.#end(culprit, { ok: false, reason: "too_large", message });
  }

  /** Deliveries again and again, a `send` never: whoever waits for it decides. */
  #tryAgain(part: Part<Entry>, { kind, message }: Extract<PartOutcome, { kind: "not_sent" | "unknown" }>): void {
    for (const entry of part.records) {
      if (entry.delivery === undefined) this.#end(entry, { ok: false, reason: kind, message });
      else if (!entry.done) this.#metrics?.retries.inc({ topic: entry.baseTopic, cause: kind });
    }
    this.#queue.putBackToRest(part, performance.now(), Math.random());
  }

  #report(parts: readonly Part<Entry>[], outcomes: readonly PartOutcome[], durationMs: number): void {
    const failures = outcomes.filter((outcome) => outcome.kind === "not_sent" || outcome.kind === "unknown");
    this.#metrics?.calls.observe({ result: failures.length === 0 ? "acknowledged" : "failed" }, durationMs / 1_000);
    const [first] = failures;
    if (first === undefined) return;
    const unknown = failures.filter(({ kind }) => kind === "unknown").length;
    this.#logger.warn(
      {
        partitions: parts.length,
        notSent: failures.length - unknown,
        unknown,
        cause: first.message,
        waiting: this.#queue.recordCount,
        durationMs: Math.round(durationMs),
      },
      "produce.failed",
    );
  }
}
