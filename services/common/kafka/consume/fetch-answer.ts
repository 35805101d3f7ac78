/**
 * The answer to a Fetch request of version 11, by https://kafka.apache.org/protocol#The_Messages_Fetch, in the shape that kafkajs gives
 * it. kafkajs reads a record through buffers, closures and 64-bit objects of its own for each of its numbers.
 */
export interface FetchAnswer {
  readonly throttleTime: number;
  readonly clientSideThrottleTime: number;
  readonly errorCode: number;
  readonly sessionId: number;
  readonly responses: readonly TopicAnswer[];
}

interface TopicAnswer {
  readonly topicName: string;
  readonly partitions: readonly PartitionAnswer[];
}

/** Numbers of 64 bits are text. */
interface PartitionAnswer {
  readonly partition: number;
  readonly errorCode: number;
  readonly highWatermark: string;
  readonly lastStableOffset: string;
  readonly lastStartOffset: string;
  readonly abortedTransactions: readonly { readonly producerId: string; readonly firstOffset: string }[];
  readonly preferredReadReplica: number;
  readonly messages: readonly FetchedMessage[];
}

type HeaderValue = Buffer | null;

/** A record. Neighbours of one key share its bytes, and those without headers the lack of them. */
interface FetchedMessage {
  readonly magicByte: number;
  readonly attributes: number;
  readonly timestamp: string;
  readonly offset: string;
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly headers: Readonly<Record<string, HeaderValue | readonly HeaderValue[]>>;
  readonly isControlRecord: boolean;
  readonly batchContext: BatchContext;
}

/** The header of a record batch: https://kafka.apache.org/documentation/#recordbatch. */
interface BatchContext {
  readonly firstOffset: string;
  readonly firstTimestamp: string;
  readonly partitionLeaderEpoch: number;
  readonly inTransaction: boolean;
  readonly isControlBatch: boolean;
  readonly lastOffsetDelta: number;
  readonly producerId: string;
  readonly producerEpoch: number;
  readonly firstSequence: number;
  readonly maxTimestamp: string;
  readonly timestampType: 0 | 1;
  readonly magicByte: number;
}

/** The only format that a broker since Kafka 4.0 has. */
const magic = 2;
const attribute = { compression: 0x7, logAppendTime: 0x8, transactional: 0x10, control: 0x20 };
/** Offset and length, which stand before what the length counts. */
const batchPrefixBytes = 12;
/** A rest below this is the beginning of a batch that did not fit into the answer; kafkajs' bound. */
const shortestBatchBytes = 49;
const noHeaders = Object.freeze({});

/** undefined: it holds what only kafkajs can read (compressed or older batches), or what nobody can. */
export function decodeFetchAnswer(payload: Buffer): FetchAnswer | undefined {
  const reader = new Reader(payload);
  try {
    const clientSideThrottleTime = reader.int32();
    const errorCode = reader.int16();
    const sessionId = reader.int32();
    // The broker has not held the answer back: it asks the client to wait.
    return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses: reader.array(topicAnswer) };
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function topicAnswer(reader: Reader): TopicAnswer {
  return { topicName: reader.bytes(reader.int16()).toString(), partitions: reader.array(partitionAnswer) };
}

function partitionAnswer(reader: Reader): PartitionAnswer {
  return {
    partition: reader.int32(),
    errorCode: reader.int16(),
    highWatermark: String(reader.int64()),
    lastStableOffset: String(reader.int64()),
    lastStartOffset: String(reader.int64()),
    abortedTransactions: reader.array(() => ({ producerId: String(reader.int64()), firstOffset: String(reader.int64()) })),
    preferredReadReplica: reader.int32(),
    messages: messagesOf(reader),
  };
}

function messagesOf(reader: Reader): FetchedMessage[] {
  const size = Math.max(0, reader.int32());
  const batches = new Reader(reader.bytes(size));
  const messages: FetchedMessage[] = [];
  while (batches.left >= shortestBatchBytes) {
    const length = batches.peekInt32(8);
    // Damaged: it would lead back to itself.
    if (length < 0) throw new RangeError("a batch of a negative length");
    // The last batch is cut where the answer is full: it comes whole with the next one.
    if (batches.left < batchPrefixBytes + length) break;
    readBatch(batches, messages);
  }
  return messages;
}

function readBatch(reader: Reader, messages: FetchedMessage[]): void {
  const firstOffset = reader.int64();
  const end = reader.at + 4 + reader.int32();
  const partitionLeaderEpoch = reader.int32();
  const magicByte = reader.int8();
  // The checksum is skipped, as by kafkajs: TCP has one, and so has the broker's disk.
  reader.skip(4);
  const attributes = reader.int16();
  if (magicByte !== magic || (attributes & attribute.compression) !== 0) throw new RangeError("not a plain batch");
  const lastOffsetDelta = reader.int32();
  const firstTimestamp = reader.int64();
  const context: BatchContext = {
    firstOffset: String(firstOffset),
    firstTimestamp: String(firstTimestamp),
    partitionLeaderEpoch,
    inTransaction: (attributes & attribute.transactional) !== 0,
    isControlBatch: (attributes & attribute.control) !== 0,
    lastOffsetDelta,
    maxTimestamp: String(reader.int64()),
    producerId: String(reader.int64()),
    producerEpoch: reader.int16(),
    firstSequence: reader.int32(),
    timestampType: (attributes & attribute.logAppendTime) === 0 ? 0 : 1,
    magicByte,
  };
  let key: Buffer | null = null;
  for (let left = reader.int32(); left > 0; left -= 1) {
    const message = readRecord(reader, { context, firstOffset, firstTimestamp, keyBefore: key });
    key = message.key;
    messages.push(message);
  }
  reader.at = end;
}

interface RecordSurroundings {
  readonly context: BatchContext;
  readonly firstOffset: number;
  readonly firstTimestamp: number;
  readonly keyBefore: Buffer | null;
}

function readRecord(reader: Reader, { context, firstOffset, firstTimestamp, keyBefore }: RecordSurroundings): FetchedMessage {
  const length = reader.varint();
  const end = reader.at + length;
  const attributes = reader.int8();
  const timestampDelta = reader.varint();
  const timestamp = context.timestampType === 1 ? context.maxTimestamp : String(firstTimestamp + timestampDelta);
  const offset = String(firstOffset + reader.varint());
  const key = reader.sameOrOtherBytes(keyBefore);
  const value = reader.varintBytes();
  const headers = readHeaders(reader);
  if (reader.at !== end) throw new RangeError("a record of another length than it says");
  const { isControlBatch: isControlRecord } = context;
  return { magicByte: magic, attributes, timestamp, offset, key, value, headers, isControlRecord, batchContext: context };
}

/** A name that is given more than once has a list of values. */
function readHeaders(reader: Reader): FetchedMessage["headers"] {
  let left = reader.varint();
  if (left <= 0) return noHeaders;
  const headers = new Map<string, HeaderValue | readonly HeaderValue[]>();
  for (; left > 0; left -= 1) {
    const name = reader.bytes(reader.varint()).toString();
    const value = reader.varintBytes();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : [before, value].flat());
  }
  return Object.fromEntries(headers);
}

/** Throws RangeError for what ends too early, and for whole numbers that are none in JavaScript. */
class Reader {
  at = 0;
  readonly #buffer: Buffer;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  get left(): number {
    return this.#buffer.length - this.at;
  }

  skip(count: number): void {
    this.at += count;
  }

  int8(): number {
    this.at += 1;
    return this.#buffer.readInt8(this.at - 1);
  }

  int16(): number {
    this.at += 2;
    return this.#buffer.readInt16BE(this.at - 2);
  }

  int32(): number {
    this.at += 4;
    return this.#buffer.readInt32BE(this.at - 4);
  }

  peekInt32(ahead: number): number {
    return this.#buffer.readInt32BE(this.at + ahead);
  }

  int64(): number {
    const high = this.int32();
    this.at += 4;
    return exact(high * 2 ** 32 + this.#buffer.readUInt32BE(this.at - 4));
  }

  /** Of up to 64 bits, zigzag: 7 bits a byte, the lowest first. */
  varint(): number {
    let unsigned = 0;
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#buffer[this.at];
      if (byte === undefined) throw new RangeError("a number ends too early");
      this.at += 1;
      unsigned += (byte & 127) * unit;
      if (byte < 128) return unsigned % 2 === 0 ? exact(unsigned) / 2 : -(exact(unsigned) + 1) / 2;
    }
  }

  bytes(length: number): Buffer {
    if (length < 0 || length > this.left) throw new RangeError("bytes that are not there");
    this.at += length;
    return this.#buffer.subarray(this.at - length, this.at);
  }

  varintBytes(): Buffer | null {
    const length = this.varint();
    return length === -1 ? null : this.bytes(length);
  }

  /** `before` itself when the bytes are the same. */
  sameOrOtherBytes(before: Buffer | null): Buffer | null {
    const length = this.varint();
    if (length === -1) return null;
    if (before?.length !== length || length > this.left) return this.bytes(length);
    if (this.#buffer.compare(before, 0, length, this.at, this.at + length) !== 0) return this.bytes(length);
    this.at += length;
    return before;
  }

  array<T>(read: (reader: Reader) => T): T[] {
    const items: T[] = [];
    for (let left = this.int32(); left > 0; left -= 1) items.push(read(this));
    return items;
  }
}

function exact(value: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError("a number above 2^53");
  return value;
}
