import { SchemaRegistry, SchemaType } from "@kafkajs/confluent-schema-registry";
import type avsc from "avsc";
import { messageOf } from "../errors.ts";
import { avroType } from "./avro.ts";
import type { Codec, DecodeResult } from "./contracts.ts";
import { schemaText, subjectOf } from "./schema-files.ts";
import type { TopicDefinition } from "./topics.ts";

export interface CodecOptions {
  readonly registryUrl: string;
  /** The topics whose values are written or read. */
  readonly uses: readonly TopicDefinition[];
}

/** A registry that is silent for this long counts as unreachable. */
const registryTimeoutMs = 3_000;

/**
 * Reads the schemas of schemas/avro and asks the registry for their ids: the id of exactly our schema, not the latest of the
 * subject, so that an instance of the release before goes on while a newer schema is registered already. Nothing is registered
 * here. Rejects when the registry cannot be reached or does not know a schema: provisioning has not run.
 */
export async function createCodec(options: CodecOptions): Promise<Codec> {
  const registry = new SchemaRegistry({ host: options.registryUrl, middlewares: [withTimeout] });
  const schemas = await Promise.all(options.uses.map((topic) => resolveSchema(registry, topic)));
  return new AvroCodec(registry, new Map(schemas.map((schema) => [schema.topic.name, schema])));
}

type Middleware = NonNullable<ConstructorParameters<typeof SchemaRegistry>[0]["middlewares"]>[number];

const withTimeout: Middleware = () => ({
  prepareRequest: async (next) => (await next()).enhance({ timeout: registryTimeoutMs }),
});

interface TopicSchema {
  readonly topic: TopicDefinition;
  /** What our records look like: the writer's schema here, the reader's schema of every other writer. */
  readonly type: avsc.Type;
  readonly id: number;
  /** From the schemas of other writers, by id, to ours. */
  readonly resolvers: Map<number, avsc.Resolver>;
}

async function resolveSchema(registry: SchemaRegistry, topic: TopicDefinition): Promise<TopicSchema> {
  const schema = schemaText(topic);
  const subject = subjectOf(topic);
  try {
    const id = await registry.getRegistryIdBySchema(subject, { type: SchemaType.AVRO, schema });
    return { topic, type: avroType(schema), id, resolvers: new Map() };
  } catch (error) {
    throw new Error(`the schema registry gives no id for schemas/avro/${topic.schema}.avsc in ${subject}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Confluent framing: a zero byte, the schema id in four bytes, the Avro encoding. */
const magicByte = 0;
const headerBytes = 5;
const slabBytes = 64 * 1024;

class AvroCodec implements Codec {
  readonly #registry: SchemaRegistry;
  readonly #schemas: ReadonlyMap<string, TopicSchema>;
  /** Values are written one after the other, each where the one before ends; what is full is left to them. */
  #slab = Buffer.allocUnsafeSlow(slabBytes);
  #slabUsed = 0;

  constructor(registry: SchemaRegistry, schemas: ReadonlyMap<string, TopicSchema>) {
    this.#registry = registry;
    this.#schemas = schemas;
  }

  encode(topic: string, value: unknown): Buffer {
    const schema = this.#schema(topic);
    if (this.#slab.length - this.#slabUsed < headerBytes) this.#renewSlab(slabBytes);
    const end = write(schema, value, this.#slab, this.#slabUsed);
    if (end > 0) return this.#cut(end);
    this.#renewSlab(this.#slab.length - this.#slabUsed - end);
    return this.#cut(write(schema, value, this.#slab, 0));
  }

  #renewSlab(neededBytes: number): void {
    this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, neededBytes));
    this.#slabUsed = 0;
  }

  #cut(end: number): Buffer {
    const value = this.#slab.subarray(this.#slabUsed, end);
    this.#slabUsed = end;
    return value;
  }

  decode<T>(topic: string, value: Buffer | null): Promise<DecodeResult<T>> | DecodeResult<T> {
    const schema = this.#schema(topic);
    if (value === null) return undecodable("the value is null");
    if (value.length <= headerBytes || value[0] !== magicByte) return undecodable("the value is not in Confluent framing");
    const id = value.readInt32BE(1);
    if (id === schema.id) return read<T>(schema.type, value);
    const resolver = schema.resolvers.get(id);
    if (resolver !== undefined) return read<T>(schema.type, value, resolver);
    return this.#decodeForeign<T>(schema, id, value);
  }

  /** What fails here is not remembered: the next record with the id asks again. */
  async #decodeForeign<T>(schema: TopicSchema, id: number, value: Buffer): Promise<DecodeResult<T>> {
    let writer: string;
    try {
      writer = JSON.stringify(await this.#registry.getSchema(id));
    } catch (error) {
      const cause = isNotFound(error) ? "unknown_schema" : "registry_unreachable";
      return { ok: false, cause, message: `schema ${id}: ${messageOf(error)}` };
    }
    try {
      const resolver = schema.type.createResolver(avroType(writer));
      schema.resolvers.set(id, resolver);
      return read<T>(schema.type, value, resolver);
    } catch (error) {
      return undecodable(`schema ${id} is not one of this topic: ${messageOf(error)}`);
    }
  }

  #schema(topic: string): TopicSchema {
    const schema = this.#schemas.get(topic);
    if (schema === undefined) throw new Error(`this codec was not made for ${topic}`);
    return schema;
  }
}

/** The end of the value in the buffer, or minus the bytes that it lacks. Throws for what is not a value of the schema. */
function write({ topic, type, id }: TopicSchema, value: unknown, buffer: Buffer, start: number): number {
  buffer[start] = magicByte;
  buffer.writeInt32BE(id, start + 1);
  try {
    return type.encode(value, buffer, start + headerBytes);
  } catch (error) {
    throw new TypeError(`not a record of ${topic.baseName}: ${problems(type, value) || messageOf(error)}`, { cause: error });
  }
}

/** Which fields are wrong; their content stays out of the message. */
function problems(type: avsc.Type, value: unknown): string {
  const found: string[] = [];
  type.isValid(value, {
    errorHook: (path, _any, expected) => found.push(`${path.join(".") || "the value"} is not of type ${expected.typeName}`),
  });
  return found.join(", ");
}

function read<T>(type: avsc.Type, value: Buffer, resolver?: avsc.Resolver): DecodeResult<T> {
  try {
    const decoded = type.decode(value, headerBytes, resolver) as { value: T; offset: number };
    if (decoded.offset === value.length) return { ok: true, value: decoded.value };
    return undecodable(decoded.offset < 0 ? "the value ends too early" : "the value has trailing bytes");
  } catch (error) {
    return undecodable(messageOf(error));
  }
}

function undecodable(message: string): Extract<DecodeResult<never>, { ok: false }> {
  return { ok: false, cause: "undecodable", message };
}

/** The registry itself says that it has no such schema; lost connections look like status 400 in its client. */
function isNotFound(error: unknown): boolean {
  return typeof error === "object" && error !== null && "status" in error && error.status === 404;
}
