import { Kafka, logLevel, type Message, Partitioners } from "kafkajs";
import { poisonHeader } from "../../support/topic-reader.ts";
import { waitFor } from "../../support/wait-for.ts";
import type { LoadOptions } from "../load.ts";
import type { Scenario } from "../scenario.ts";
import type { World } from "../world.ts";

/** On a record that is written again, so that it is not written again and again. */
const copyHeader = "copy";
const longLoad: Partial<LoadOptions> = { refreshes: 20, pauseMs: 1_000 };
const consumers = ["splitter", "fetcher", "aggregator"] as const;

/** Everything that a service reads. */
function readTopics({ stage }: World): string[] {
  const { refreshRequested, tokenRequested, retryTiers, tokenOutcome, watchdog } = stage.topics;
  return [refreshRequested, tokenRequested, ...retryTiers, tokenOutcome, watchdog].map(({ name }) => name);
}

function kafkaOf({ stage }: World): Kafka {
  const brokers = (stage.environment.env.KAFKA_BROKERS ?? "").split(",");
  return new Kafka({ brokers, clientId: "faults", logLevel: logLevel.NOTHING });
}

interface Copying {
  readonly copied: () => number;
  stop(): Promise<void>;
}

/** Writes every record that a service reads so many times again, at once, into its own partition. */
async function copyEverything(world: World, times: number): Promise<Copying> {
  const kafka = kafkaOf(world);
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner });
  const consumer = kafka.consumer({ groupId: `copies-${world.stage.environment.name}-${world.seed}`, maxWaitTimeInMs: 50 });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topics: readTopics(world), fromBeginning: true });
  let copied = 0;
  await consumer.run({
    autoCommit: false,
    eachBatch: async ({ batch, resolveOffset }) => {
      const originals = batch.messages.filter(
        ({ headers }) => !(copyHeader in (headers ?? {}) || poisonHeader in (headers ?? {})),
      );
      const copies = originals.flatMap((message) => Array.from({ length: times }, () => copyOf(message, batch.partition)));
      if (copies.length > 0) await producer.send({ topic: batch.topic, messages: copies });
      copied += copies.length;
      resolveOffset(batch.lastOffset());
    },
  });
  return {
    copied: () => copied,
    stop: async () => {
      await consumer.disconnect();
      await producer.disconnect();
    },
  };
}

function copyOf({ key, value, headers }: Message, partition: number): Message {
  return { key: key ?? null, value, headers: { ...headers, [copyHeader]: "1" }, partition };
}

/** Until the services have committed everything that is in the log. */
async function allRead(world: World): Promise<void> {
  const admin = kafkaOf(world).admin();
  await admin.connect();
  const groupPrefix = world.stage.environment.env.GROUP_PREFIX ?? "";
  const behind = async (): Promise<string[]> => {
    const groups = consumers.map((service) => admin.fetchOffsets({ groupId: `${groupPrefix}.${service}` }));
    const committed = (await Promise.all(groups)).flat();
    const ends = await Promise.all(
      readTopics(world).map(async (topic) => ({ topic, ends: await admin.fetchTopicOffsets(topic) })),
    );
    return ends.flatMap(({ topic, ends: partitions }) =>
      partitions.flatMap(({ partition, high }) => {
        const offsets = committed.filter((one) => one.topic === topic).flatMap((one) => one.partitions);
        const read = offsets.find((one) => one.partition === partition)?.offset ?? "0";
        return Number(high) > Math.max(0, Number(read)) ? `${topic}/${partition}: ${read} of ${high}` : [];
      }),
    );
  };
  try {
    // The watchdog looks an hour later: what is in its topic is not due.
    const withoutWatchdog = async () => (await behind()).filter((place) => !place.startsWith(world.stage.topics.watchdog.name));
    await waitFor("everything to be read", withoutWatchdog, ({ length }) => length === 0, { withinMs: 120_000, everyMs: 200 });
  } finally {
    await admin.disconnect();
  }
}

function duplicates(times: number): Scenario {
  return {
    name: `records-${times + 1}-times`,
    title: `every record that a service reads is in the log ${times + 1} times: no call and no count comes of it`,
    async run(world) {
      const copying = await copyEverything(world, times);
      try {
        const load = await world.startLoad(longLoad);
        await load.posted;
        await allRead(world);
        world.fault(`${copying.copied()} copies of records`);
      } finally {
        await copying.stop();
      }
    },
  };
}

/** Of what no service can decode, whatever it reads. A schema id that no registry has given out. */
const poisons: readonly Message[] = [
  { key: "poison", value: Buffer.alloc(0) },
  { key: "poison", value: null },
  { key: "poison", value: "not framed at all" },
  { key: "poison", value: Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 1, 2, 3]) },
  { key: Buffer.from([0xc3, 0x28]), value: Buffer.from("{}") },
  { key: null, value: "no key" },
];

export const recordScenarios: readonly Scenario[] = [
  duplicates(1),
  duplicates(9),
  {
    name: "records-of-last-week",
    title: "all that was ever written is written once more, to services that have forgotten it: no count, row or event changes",
    async run(world) {
      const load = await world.startLoad({ refreshes: 12, pauseMs: 600 });
      await load.posted;
      await allRead(world);
      await Promise.all(consumers.map((service) => world.stop(service)));
      // What the fetcher has forgotten it calls for once more: README, Guarantees, I7 and I8.
      world.fault("every record once more", { repeats: 1 });
      const copying = await copyEverything(world, 1);
      try {
        await Promise.all(consumers.map((service) => world.fleet.start(service)));
        await allRead(world);
      } finally {
        await copying.stop();
      }
    },
  },
  {
    name: "poison",
    title:
      "what nobody can decode lies between the records that a service reads: each becomes one dead letter, and nothing waits",
    async run(world) {
      const producer = kafkaOf(world).producer({ createPartitioner: Partitioners.DefaultPartitioner });
      await producer.connect();
      const load = await world.startLoad(longLoad);
      await world.calls(world.draw(30, 60));
      // The watchdog's are looked at when they are due, in an hour.
      for (const topic of readTopics(world).filter((name) => name !== world.stage.topics.watchdog.name)) {
        const messages = poisons.map((message) => ({
          ...message,
          partition: world.draw(0, 5),
          headers: { [poisonHeader]: "1" },
        }));
        await producer.send({ topic, messages });
        world.account.deadLetters += messages.length;
        world.fault(`${messages.length} poisoned records in ${topic.replace(/^.*?internal\.metadata\./, "")}`);
      }
      await load.posted;
      await producer.disconnect();
    },
  },
];
