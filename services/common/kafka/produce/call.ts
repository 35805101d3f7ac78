import type { Message, Producer, TopicMessages } from "kafkajs";
import {
  answerBehind,
  type CarrierMessage,
  carried,
  type ProduceAnswer,
  type ProduceRequest,
  patchProduceRequests,
  type RequestObserver,
} from "./request-patch.ts";

/**
 * What is known of one partition's part of a call.
 * - kept: not a byte of it left this process, and none will. `recalled`: because `mayLeave` said no to the call.
 * - unanswered: given to the connection, and no answer came.
 * - answered: errorCode 0 is success; baseOffset is -1 when nothing was appended.
 */
export type PartAnswer =
  | { readonly state: "kept"; readonly recalled: boolean }
  | { readonly state: "unanswered" }
  | { readonly state: "answered"; readonly errorCode: number; readonly baseOffset: number; readonly appendTimeMs: number };

export interface CallPart {
  readonly topic: string;
  readonly partition: number;
  /** At least one, encoded from their keys on: record-batch.ts. */
  readonly records: readonly Buffer[];
}

export interface CallOptions<P extends CallPart> {
  /** How long the broker may wait for its replicas: less than a request may take, so that its answer comes first. */
  readonly ackTimeoutMs: number;
  /** Longer than a call can need to connect, to look for leaders and to be answered. */
  readonly stuckAfterMs: number;
  /** kafkajs may connect and look for leaders for seconds before it writes: asked at the last moment, for the parts of a request. */
  readonly mayLeave: (parts: readonly P[]) => boolean;
}

export interface CallResult {
  /** In the order of the parts. */
  readonly answers: readonly PartAnswer[];
  /** What kafkajs threw, undefined when it did not. */
  readonly error: unknown;
  readonly stuck: boolean;
}

/**
 * One `sendBatch`, and what it did to each partition. kafkajs alone tells less: it throws the first error of the first broker
 * that fails, forgets what the other partitions answered, and throws the error of a failed reconnection in place of the one
 * that lost the request. A part whose fate is not known exactly would be repeated, or called lost, without need.
 */
export async function produceCall<P extends CallPart>(
  producer: Pick<Producer, "sendBatch">,
  parts: readonly P[],
  options: CallOptions<P>,
): Promise<CallResult> {
  patchProduceRequests();
  const call = new Call(parts, options.mayLeave);
  const sending = send(producer, call.topicMessages(), options.ackTimeoutMs).then(async (error) => {
    await call.close();
    return { error, stuck: false };
  });
  const ended = await Promise.race([sending, stuckAfter(options.stuckAfterMs, sending)]);
  if (ended.stuck) void call.close();
  return { answers: call.answers(), ...ended };
}

/** Resolves with what was thrown. */
async function send(producer: Pick<Producer, "sendBatch">, topicMessages: TopicMessages[], timeout: number): Promise<unknown> {
  try {
    await producer.sendBatch({ acks: -1, timeout, topicMessages });
    return undefined;
  } catch (error) {
    return error ?? new Error("kafkajs failed without an error");
  }
}

function stuckAfter(ms: number, sending: Promise<unknown>): Promise<{ error: unknown; stuck: true }> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve({ error: new Error(`kafkajs has not answered for ${ms} ms`), stuck: true }), ms);
    void sending.finally(() => clearTimeout(timer));
  });
}

class Call<P extends CallPart> implements RequestObserver {
  readonly #parts = new Map<string, P>();
  readonly #answers = new Map<string, PartAnswer>();
  readonly #mayLeave: (parts: readonly P[]) => boolean;
  readonly #requests: Promise<unknown>[] = [];
  #recalled = false;
  #closed = false;

  constructor(parts: readonly P[], mayLeave: (parts: readonly P[]) => boolean) {
    for (const part of parts) this.#parts.set(nameOf(part.topic, part.partition), part);
    this.#mayLeave = mayLeave;
  }

  /** kafkajs passes a message on as it is: that of a part carries its records, and leads back to this call. */
  topicMessages(): TopicMessages[] {
    const byTopic = Map.groupBy(this.#parts.values(), ({ topic }) => topic);
    return [...byTopic].map(([topic, parts]) => ({ topic, messages: parts.map((part) => this.#carrierOf(part)) }));
  }

  #carrierOf({ partition, records }: P): Message & CarrierMessage {
    return { partition, value: null, [carried]: { records, observer: this } };
  }

  /** Nothing leaves any more; resolves when what had left is answered. */
  async close(): Promise<void> {
    this.#closed = true;
    // sendBatch throws when the first broker fails: the requests to the others are still under way.
    await Promise.allSettled(this.#requests);
  }

  answers(): PartAnswer[] {
    return [...this.#parts.keys()].map((name) => this.#answers.get(name) ?? { state: "kept", recalled: this.#recalled });
  }

  /** One broker's share of the call, at the moment it is to be written. */
  observe(request: ProduceRequest, write: () => Promise<ProduceAnswer>): Promise<ProduceAnswer> {
    const given = this.#give(namesIn(request), write);
    this.#requests.push(given);
    return given;
  }

  async #give(names: readonly string[], write: () => Promise<ProduceAnswer>): Promise<ProduceAnswer> {
    const parts = names.map((name) => this.#parts.get(name)).filter((part) => part !== undefined);
    this.#recalled ||= !this.#closed && !this.#mayLeave(parts);
    if (this.#closed || this.#recalled) throw new Error("the call was recalled before it was written");
    for (const name of names) this.#answers.set(name, { state: "unanswered" });
    try {
      const answer = await write();
      this.#take(answer);
      return answer;
    } catch (error) {
      const answer = answerBehind(error);
      if (answer !== undefined) this.#take(answer);
      else if (neverWritten(error)) for (const name of names) this.#answers.delete(name);
      throw error;
    }
  }

  #take(answer: ProduceAnswer): void {
    for (const { topicName, partitions } of answer.topics) {
      for (const { partition, errorCode, baseOffset, logAppendTime } of partitions) {
        const known = { errorCode, baseOffset: Number(baseOffset), appendTimeMs: Number(logAppendTime) };
        this.#answers.set(nameOf(topicName, partition), { state: "answered", ...known });
      }
    }
  }
}

/** The connection was gone, or refused, before the request was put on it. */
function neverWritten(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "KafkaJSConnectionError") return false;
  return error.message === "Not connected" || ("code" in error && error.code === "ECONNREFUSED");
}

function namesIn(request: ProduceRequest): string[] {
  return request.topicData.flatMap(({ topic, partitions }) => partitions.map(({ partition }) => nameOf(topic, partition)));
}

function nameOf(topic: string, partition: number): string {
  return `${partition}/${topic}`;
}
