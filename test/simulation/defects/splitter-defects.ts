import type { Admin, Kafka } from "kafkajs";
import type { startBatchConsumer } from "../../../services/common/kafka/consume/batch-consumer.ts";
import type { createHandOver } from "../../../services/splitter/adapters/hand-over.ts";
import type { createReadRegistered } from "../../../services/splitter/adapters/registered-tokens.ts";
import type { HandOver } from "../../../services/splitter/core/ports.ts";
import type { Defect, Spoil } from "./defect.ts";

type MakeHandOver = typeof createHandOver;

const handOver = (spoil: (real: HandOver) => HandOver): Spoil<MakeHandOver> => {
  return (make) => (parts) => spoil(make(parts));
};

const unacknowledged: Defect = {
  name: "splitter: tokens are not waited for",
  foundAs: /I13/,
  spoil: {
    createHandOver: handOver((real) => async (handover, signal) => {
      void real(handover, signal).catch(() => undefined);
    }),
  },
};

const lastTokenLost: Defect = {
  name: "splitter: the last token is left out",
  foundAs: /I13/,
  spoil: {
    createHandOver: handOver(
      (real) => (handover, signal) => real({ ...handover, requested: handover.requested.slice(1) }, signal),
    ),
  },
};

/** Its checks are read, and nothing is done. */
const noWatchdog: Defect = {
  name: "splitter: no watchdog",
  foundAs: /I13|I5/,
  spoil: {
    startBatchConsumer: ((make) => (kafka, options) => {
      const [first, second] = options.topics;
      if (!options.groupId.endsWith(".splitter") || first === undefined || second === undefined) return make(kafka, options);
      return make(kafka, { ...options, topics: [first, { ...second, handler: async () => {} }] });
    }) as Spoil<typeof startBatchConsumer>,
  },
};

const allRegistered: Defect = {
  name: "splitter: registered tokens are not found",
  foundAs: /I1/,
  spoil: { createReadRegistered: (() => () => async () => new Set()) as Spoil<typeof createReadRegistered> },
};

/** `fromBeginning` off, as kafkajs has it by default: where nothing is committed, reading starts at the end. */
const fromTheEnd: Defect = {
  name: "every service: fromBeginning off",
  foundAs: /I5|I13/,
  spoil: {
    startBatchConsumer: ((make) => (kafka, options) => make(startingAtTheEnd(kafka), options)) as Spoil<
      typeof startBatchConsumer
    >,
  },
};

function startingAtTheEnd(kafka: Kafka): Kafka {
  const admin = (): Admin => {
    const real = kafka.admin();
    return {
      ...real,
      fetchTopicOffsets: async (topic) => (await real.fetchTopicOffsets(topic)).map((one) => ({ ...one, low: one.high })),
    };
  };
  return { consumer: (options: never) => kafka.consumer(options), admin } as unknown as Kafka;
}

export const splitterDefects: readonly Defect[] = [unacknowledged, lastTokenLost, noWatchdog, allRegistered, fromTheEnd];
