import { createRequire } from "node:module";
import { types } from "cassandra-driver";

/** A statement of a batch, prepared when it has an id: values as values.ts gives them, one for each column. */
interface PreparedStatement {
  readonly query: string;
  readonly queryId?: Buffer;
  readonly params: readonly unknown[];
  readonly meta?: { readonly columns: readonly { readonly type: ColumnType }[] };
}

interface ColumnType {
  readonly code: number;
}

/** The parts of cassandra-driver's own request that are read here; its types do not show it. */
export interface BatchRequest {
  readonly queries: readonly PreparedStatement[];
  readonly options: BatchOptions;
  /** Logged, unlogged or counter. */
  readonly type: number;
  readonly timestamp: types.Long | null | undefined;
  /** Bytes of the body, set when it is written. */
  length: number;
  write(encoder: Encoder, streamId: number): Buffer;
}

interface BatchOptions {
  isQueryTracing(): boolean | undefined;
  getCustomPayload(): object | undefined;
  getConsistency(): number;
  getSerialConsistency(): number | undefined;
}

export interface Encoder {
  readonly protocolVersion: number;
  encode(value: unknown, type: ColumnType): Buffer | null | typeof types.unset;
}

interface Prepared {
  readonly queryId: Buffer;
  readonly meta: { readonly columns: readonly { readonly type: ColumnType }[] };
}

interface Prepare {
  getPrepared(client: object, loadBalancing: object, query: string, keyspace: string | undefined): Promise<Prepared>;
  getPreparedMultiple(
    client: object,
    loadBalancing: object,
    statements: readonly { readonly query: string; readonly params: readonly unknown[] }[],
    keyspace: string | undefined,
  ): Promise<PreparedStatement[]>;
}

let patched = false;

/**
 * cassandra-driver 4.10 looks every statement of a batch up by its text, makes two buffers for each of its values, and joins thousands
 * of them. Here each text is looked up once, and a batch of prepared statements is written into one buffer, in the same bytes; other
 * batches are left to the driver. Statements come with a list of parameters.
 */
export function patchBatchRequests(): void {
  if (patched) return;
  patched = true;
  prepareEachTextOnce(createRequire(import.meta.url)("cassandra-driver/lib/prepare-handler.js") as Prepare);
  writeIntoOneBuffer(batchRequestClass().prototype);
}

function prepareEachTextOnce(handler: Prepare): void {
  handler.getPreparedMultiple = async (client, loadBalancing, statements, keyspace) => {
    const known = new Map<string, Prepared>();
    const prepared: PreparedStatement[] = [];
    for (const { query, params } of statements) {
      const info = known.get(query) ?? (await handler.getPrepared(client, loadBalancing, query, keyspace));
      known.set(query, info);
      prepared.push({ query, params, queryId: info.queryId, meta: info.meta });
    }
    return prepared;
  };
}

function writeIntoOneBuffer(prototype: BatchRequest): void {
  const { write } = prototype;
  prototype.write = function (this: BatchRequest, encoder, streamId) {
    return canEncode(this, encoder) ? encodeBatch(this, encoder, streamId) : write.call(this, encoder, streamId);
  };
}

/** The driver's own class. */
export function batchRequestClass(): { readonly prototype: BatchRequest } {
  const require = createRequire(import.meta.url);
  return (require("cassandra-driver/lib/requests.js") as { BatchRequest: { prototype: BatchRequest } }).BatchRequest;
}

const protocolVersion = 4;

export function canEncode({ queries, options }: BatchRequest, encoder: Encoder): boolean {
  const isPlain = !options.isQueryTracing() && !options.getCustomPayload();
  return isPlain && encoder.protocolVersion === protocolVersion && queries.every(({ queryId, meta }) => queryId && meta);
}

const headerBytes = 9;
const batchOpcode = 0x0d;
const preparedKind = 1;
const flags = { serialConsistency: 0x10, defaultTimestamp: 0x20 };

/** The whole frame: CQL binary protocol v4, sections 2 and 4.1.7. Sets the request's length as the driver does. */
export function encodeBatch(request: BatchRequest, encoder: Encoder, streamId: number): Buffer {
  const { queries, options, timestamp } = request;
  const frame = new FrameWriter(encoder);
  frame.uint8(request.type);
  frame.uint16(queries.length);
  for (const statement of queries) frame.statement(statement);
  frame.uint16(options.getConsistency());
  const serialConsistency = options.getSerialConsistency();
  frame.uint8((serialConsistency ? flags.serialConsistency : 0) | (timestamp ? flags.defaultTimestamp : 0));
  if (serialConsistency) frame.uint16(serialConsistency);
  if (timestamp) frame.int64(timestamp.getHighBits(), timestamp.getLowBits());
  request.length = frame.bodyLength;
  return frame.finish(streamId);
}

/** Grows to the largest frame so far; a frame is written here, without pause, and copied out. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024);

const { dataTypes } = types;
const isText = (code: number): boolean => code === dataTypes.text || code === dataTypes.varchar;
const lengthOf = { null: -1, unset: -2 };

class FrameWriter {
  readonly #encoder: Encoder;
  #end = headerBytes;
  /** Neighbours are of one refresh. */
  #lastUuid: { readonly text: string; readonly bytes: Buffer } | undefined;

  constructor(encoder: Encoder) {
    this.#encoder = encoder;
  }

  get bodyLength(): number {
    return this.#end - headerBytes;
  }

  finish(streamId: number): Buffer {
    scratch[0] = protocolVersion;
    scratch[1] = 0;
    scratch.writeInt16BE(streamId, 2);
    scratch[4] = batchOpcode;
    scratch.writeUInt32BE(this.bodyLength, 5);
    return Buffer.from(scratch.subarray(0, this.#end));
  }

  statement({ queryId, params, meta }: PreparedStatement): void {
    this.uint8(preparedKind);
    this.uint16(queryId?.length ?? 0);
    if (queryId !== undefined) this.bytes(queryId);
    this.uint16(params.length);
    for (let index = 0; index < params.length; index += 1) {
      const column = meta?.columns[index];
      if (column === undefined) throw new TypeError(`the statement has no parameter ${index + 1}`);
      this.value(params[index], column.type);
    }
  }

  /** The usual ones in place, all others by way of the driver's encoder. */
  value(value: unknown, type: ColumnType): void {
    if (typeof value === "string" && isText(type.code)) this.#text(value);
    else if (typeof value === "number" && type.code === dataTypes.bigint) this.#bigint(value);
    else if (typeof value === "string" && type.code === dataTypes.uuid) this.#sized(this.#uuid(value, type));
    else {
      const encoded = this.#encoder.encode(value, type);
      if (encoded === null) this.#int32(lengthOf.null);
      else if (Buffer.isBuffer(encoded)) this.#sized(encoded);
      else this.#int32(lengthOf.unset);
    }
  }

  uint8(value: number): void {
    this.#reserve(1);
    scratch[this.#end] = value;
    this.#end += 1;
  }

  uint16(value: number): void {
    this.#reserve(2);
    this.#end = scratch.writeUInt16BE(value, this.#end);
  }

  bytes(value: Buffer): void {
    this.#reserve(value.length);
    scratch.set(value, this.#end);
    this.#end += value.length;
  }

  int64(high: number, low: number): void {
    this.#int32(high);
    this.#int32(low);
  }

  #int32(value: number): void {
    this.#reserve(4);
    this.#end = scratch.writeInt32BE(value, this.#end);
  }

  #sized(value: Buffer): void {
    this.#int32(value.length);
    this.bytes(value);
  }

  #text(value: string): void {
    this.#reserve(4 + 3 * value.length);
    const length = scratch.write(value, this.#end + 4);
    scratch.writeInt32BE(length, this.#end);
    this.#end += 4 + length;
  }

  /** A whole number within ±(2^53 − 1): values.ts has looked. */
  #bigint(value: number): void {
    this.#int32(8);
    this.int64(Math.floor(value / 2 ** 32), value | 0);
  }

  #uuid(text: string, type: ColumnType): Buffer {
    if (this.#lastUuid?.text !== text) this.#lastUuid = { text, bytes: this.#encoder.encode(text, type) as Buffer };
    return this.#lastUuid.bytes;
  }

  #reserve(byteCount: number): void {
    if (this.#end + byteCount <= scratch.length) return;
    const grown = Buffer.allocUnsafeSlow(2 * (this.#end + byteCount));
    scratch.copy(grown, 0, 0, this.#end);
    scratch = grown;
  }
}
