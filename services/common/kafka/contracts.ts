/** What the services see of Kafka. Everything that speaks to kafkajs stays in this folder. */

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export type Headers = Readonly<Record<string, string | Buffer>>;

/** A record as the broker gave it. Offsets are whole numbers below 2^53. */
export interface RawRecord extends TopicPartition {
  readonly offset: number;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  /** The append time on the broker's clock, for topics with LogAppendTime. */
  readonly timestampMs: number;
  readonly headers: Headers;
}

/** A record whose value was decoded with its Avro schema. `bytes` is the size of the encoded value. */
export interface DecodedRecord<T> extends TopicPartition {
  readonly offset: number;
  readonly key: string;
  readonly timestampMs: number;
  readonly bytes: number;
  readonly value: T;
}

/** A record to be produced; its value is encoded already. Always a key. */
export interface OutgoingRecord {
  readonly topic: string;
  readonly key: string;
  readonly value: Buffer;
  readonly headers?: Headers;
}

/**
 * How a try to produce ended.
 * - not_sent: no byte left, or the broker refused: the record is in no log and will not be.
 * - unknown: sent and unanswered: it may be in the log.
 * - too_large: above the topic's max.message.bytes, found before it was queued or said by the broker.
 */
export type SendResult =
  | {
      readonly ok: true;
      readonly partition: number;
      readonly offset: number;
      readonly appendTimeMs: number;
    }
  | {
      readonly ok: false;
      readonly reason: "not_sent" | "unknown" | "too_large";
      readonly message: string;
    };

export interface RecordProducer {
  /** One try for one record, bounded in time: for callers that have somebody waiting. */
  send(record: OutgoingRecord, timeoutMs: number): Promise<SendResult>;
  /**
   * Every record acknowledged, tried again without end, coalesced with what other callers have waiting. A record's
   * `too_large` is final and reported in its place (results are in the order of the records).
   * Rejects with AbandonedError when `signal` aborts, or when `mayAct`, asked before each try, says no.
   */
  deliver(
    records: readonly OutgoingRecord[],
    options?: { signal?: AbortSignal; mayAct?: () => boolean },
  ): Promise<
    readonly (
      | Extract<SendResult, { ok: true }>
      | {
          readonly ok: false;
          readonly reason: "too_large";
          readonly message: string;
        }
    )[]
  >;
  /** Settles what is in flight, refuses what is new, disconnects. */
  close(): Promise<void>;
}

/** Encodes and decodes the values of the topics, in Confluent framing. Schema ids are resolved once at start. */
export interface Codec {
  encode(topic: string, value: unknown): Buffer;
  /**
   * `unknown_schema`: the registry says it does not know the id: a dead letter. `registry_unreachable`: hold the partition.
   * `undecodable`: empty, tombstone, wrong framing or bytes: a dead letter.
   */
  decode<T>(topic: string, value: Buffer | null): Promise<DecodeResult<T>> | DecodeResult<T>;
}

export type DecodeResult<T> =
  | { readonly ok: true; readonly value: T }
  | {
      readonly ok: false;
      readonly cause: "undecodable" | "unknown_schema" | "registry_unreachable";
      readonly message: string;
    };

/** What a batch handler knows about its partition. */
export interface BatchContext extends TopicPartition {
  /** Aborted when the partition is lost or the service stops: leave at once, the batch is not committed. */
  readonly signal: AbortSignal;
  /** The lease: may an effect start that Cassandra cannot fence? (README, Exactness, ownership) */
  mayAct(): boolean;
  /** The offset after the partition's last record when the batch was fetched. */
  readonly highWatermark: number;
}

/**
 * Works on records of one partition, in order, at most 1000 or 4 MiB. Returns: done, committed. Throws PoisonRecordError: the
 * batch is bisected down to the one record, which goes to the dead letters. AbandonedError: left uncommitted. Anything else:
 * tried again without end, heartbeating.
 */
export type BatchHandler<T> = (records: readonly DecodedRecord<T>[], context: BatchContext) => Promise<void>;
