import type avsc from "avsc";
import { avroType } from "../../../services/common/kafka/avro.ts";
import type { Codec, DecodeResult } from "../../../services/common/kafka/contracts.ts";
import { schemaText } from "../../../services/common/kafka/schema-files.ts";
import type { TopicDefinition } from "../../../services/common/kafka/topics.ts";

/** Stands for services/common/kafka/codec.ts: the same schemas and framing, with ids that nobody has to be asked for. */
export async function createCodec({ uses }: { readonly uses: readonly TopicDefinition[] }): Promise<Codec> {
  return codecFor(uses);
}

const types = new Map<string, avsc.Type>();
const headerBytes = 5;

export function codecFor(uses: readonly TopicDefinition[]): Codec {
  const typeOf = new Map(uses.map((topic) => [topic.name, typeFor(topic)]));
  const known = (topic: string): avsc.Type => {
    const type = typeOf.get(topic);
    if (type === undefined) throw new Error(`this codec was not made for ${topic}`);
    return type;
  };
  return {
    encode(topic, value) {
      const body = known(topic).toBuffer(value);
      const framed = Buffer.alloc(headerBytes + body.length);
      body.copy(framed, headerBytes);
      return framed;
    },
    decode: <T>(topic: string, value: Buffer | null) => decode<T>(known(topic), value),
  };
}

function decode<T>(type: avsc.Type, value: Buffer | null): DecodeResult<T> {
  if (value === null || value.length <= headerBytes || value[0] !== 0) {
    return { ok: false, cause: "undecodable", message: "not in Confluent framing" };
  }
  try {
    const decoded = type.decode(value, headerBytes) as { value: T; offset: number };
    if (decoded.offset === value.length) return { ok: true, value: decoded.value };
    return { ok: false, cause: "undecodable", message: "the value ends elsewhere" };
  } catch (error) {
    return { ok: false, cause: "undecodable", message: String(error) };
  }
}

function typeFor(topic: TopicDefinition): avsc.Type {
  const name = topic.schema ?? "";
  const type = types.get(name) ?? avroType(schemaText(topic));
  types.set(name, type);
  return type;
}
