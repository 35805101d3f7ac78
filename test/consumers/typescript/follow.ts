import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { SchemaRegistry } from "@kafkajs/confluent-schema-registry";
import { Kafka, logLevel } from "kafkajs";

/**
 * Holds the tokens of one collection as a marketplace would: bootstraps from public.metadata.token.state.v1, follows it, and drops
 * what is not newer. Prints what it holds for each line on its standard input; ends with it.
 */

interface TokenState {
  collection_address: string;
  token_id: string;
  version: number;
  content_hash: string;
  metadata: string;
}

const { values: options } = parseArgs({
  options: {
    brokers: { type: "string", default: "127.0.0.1:9092" },
    registry: { type: "string", default: "http://127.0.0.1:8081/apis/ccompat/v7" },
    topic: { type: "string", default: "public.metadata.token.state.v1" },
    collection: { type: "string", default: "" },
  },
});

const registry = new SchemaRegistry({ host: options.registry });
const kafka = new Kafka({ brokers: options.brokers.split(","), clientId: "example", logLevel: logLevel.ERROR });
// A group of its own for each run, and nothing committed: the topic is the storage, and every start reads all of it.
const consumer = kafka.consumer({ groupId: `example-${randomUUID()}`, maxWaitTimeInMs: 250 });
const admin = kafka.admin();

const tokens = new Map<string, TokenState>();
/** By partition: the offset to be read next. */
const positions = new Map<number, number>();
let discarded = 0;

function apply(state: TokenState): void {
  if (state.collection_address !== options.collection) return;
  const held = tokens.get(state.token_id);
  // Redelivered, or older than what is held: a version is never used for two contents.
  if (held !== undefined && state.version <= held.version) discarded += 1;
  else tokens.set(state.token_id, state);
}

async function readToTheEnd(): Promise<void> {
  const ends = await admin.fetchTopicOffsets(options.topic);
  const behind = () => ends.some(({ partition, low, high }) => high !== low && (positions.get(partition) ?? 0) < Number(high));
  while (behind()) await new Promise((resolve) => setTimeout(resolve, 50));
}

await Promise.all([admin.connect(), consumer.connect()]);
await consumer.subscribe({ topic: options.topic, fromBeginning: true });
await consumer.run({
  autoCommit: false,
  eachMessage: async ({ partition, message }) => {
    const value = message.value ?? Buffer.alloc(0);
    try {
      apply(await registry.decode(value));
    } catch (error) {
      const schemaId = value.length >= 5 ? value.readInt32BE(1) : undefined;
      console.error(`${options.topic}, partition ${partition}, offset ${message.offset}, schema ${schemaId}: ${error}`);
      throw error;
    }
    positions.set(partition, Number(message.offset) + 1);
  },
});
for await (const _ of createInterface({ input: process.stdin })) {
  await readToTheEnd();
  console.log(JSON.stringify({ tokens: [...tokens.values()], discarded }));
}
await Promise.all([consumer.disconnect(), admin.disconnect()]);
