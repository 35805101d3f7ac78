import type { createPublisher } from "../../../services/aggregator/adapters/publisher.ts";
import type { createRefreshStore } from "../../../services/aggregator/adapters/refresh-store.ts";
import type { createTokenStore } from "../../../services/aggregator/adapters/token-store.ts";
import type { Publisher, RefreshStore } from "../../../services/aggregator/core/ports.ts";
import type { Progress } from "../../../services/aggregator/core/progress.ts";
import type { startBatchConsumer } from "../../../services/common/kafka/consume/batch-consumer.ts";
import type { BatchHandler } from "../../../services/common/kafka/contracts.ts";
import type { TokenState } from "../../../services/common/messages/records.ts";
import type { Defect, Spoil } from "./defect.ts";

type StartBatch = typeof startBatchConsumer;
type MakePublisher = typeof createPublisher;
type MakeRefreshStore = typeof createRefreshStore;
type MakeTokenStore = typeof createTokenStore;

const publisher = (spoil: (real: Publisher) => Partial<Publisher>): Spoil<MakePublisher> => {
  return (make) => (parts) => {
    const real = make(parts);
    return { ...real, ...spoil(real) };
  };
};

const refreshStore = (spoil: (real: RefreshStore) => Partial<RefreshStore>): Spoil<MakeRefreshStore> => {
  return (make) => (options) => {
    const real = make(options);
    return { ...real, ...spoil(real) };
  };
};

/** The same consumer for the aggregator, whose handler is another. */
const outcomeHandler = (spoil: (real: BatchHandler<never>) => BatchHandler<never>): Spoil<StartBatch> => {
  return (make) => (kafka, options) => {
    if (!options.groupId.endsWith(".aggregator")) return make(kafka, options);
    return make(kafka, { ...options, topics: options.topics.map((entry) => ({ ...entry, handler: spoil(entry.handler) })) });
  };
};

const commitBeforeEffect: Defect = {
  name: "aggregator: commit before effect",
  foundAs: /I13/,
  spoil: {
    startBatchConsumer: outcomeHandler((real) => async (records, context) => {
      void real(records, context).catch(() => undefined);
    }),
  },
};

/** The states of a batch leave only behind what `behind` writes. */
function statesBehind(behind: "createTokenStore" | "createRefreshStore"): Defect["spoil"] {
  // Of one process each: a new process has a new publisher first, then its stores.
  let waiting: (() => Promise<void>)[] = [];
  const flush = async (): Promise<void> => {
    const [now, rest] = [waiting, [] as typeof waiting];
    waiting = rest;
    for (const publish of now) await publish();
  };
  const spoilPublisher: Spoil<MakePublisher> = publisher((real) => {
    return {
      publishStates: async (states: readonly TokenState[], lease) => {
        waiting.push(() => real.publishStates(states, lease));
      },
    };
  });
  const tokens: Spoil<MakeTokenStore> = (make) => (cassandra, untilDurable) => {
    const real = make(cassandra, untilDurable);
    return { ...real, write: async (writes, signal) => real.write(writes, signal).then(flush) };
  };
  const refreshes = refreshStore((real) => ({ write: async (writes, signal) => real.write(writes, signal).then(flush) }));
  return { createPublisher: spoilPublisher, [behind]: behind === "createTokenStore" ? tokens : refreshes };
}

const noFence: Defect = {
  name: "aggregator: rows without their version as timestamp",
  foundAs: /I2|I3|I9|I4|other bytes|rest/,
  spoil: {
    createTokenStore: ((make) => (cassandra, untilDurable) =>
      make(onTheWallClock(cassandra), untilDurable)) as Spoil<MakeTokenStore>,
    createRefreshStore: ((make) => (options) =>
      make({ ...options, cassandra: onTheWallClock(options.cassandra) })) as Spoil<MakeRefreshStore>,
  },
};

type Session = Parameters<MakeTokenStore>[0];

/** `USING TIMESTAMP ?` is the first parameter of an update, and the last but one of an insert with a TTL. */
function onTheWallClock(cassandra: Session): Session {
  return {
    read: (query, params) => cassandra.read(query, params),
    batch: (statements) =>
      cassandra.batch(
        statements.map(({ query, params }) => {
          const place = query.startsWith("UPDATE") ? 0 : params.length - 2;
          return { query, params: params.map((value, index) => (index === place ? Date.now() * 1_000 : value)) };
        }),
      ),
  };
}

const staleCache: Defect = {
  name: "aggregator: caches kept over a rebalance",
  foundAs: /I\d|other bytes|fence|rest/,
  spoil: {
    startBatchConsumer: ((make) =>
      (kafka, { onAssigned: _forget, ...options }) =>
        make(kafka, options)) as Spoil<StartBatch>,
  },
};

/** Counts how many are done instead of remembering which. */
const counter: Defect = {
  name: "aggregator: counter instead of bitmap",
  foundAs: /I\d/,
  spoil: {
    createRefreshStore: refreshStore((real) => ({
      load: async (ids) => new Map([...(await real.load(ids))].map(([id, progress]) => [id, countedOnly(progress)])),
    })),
  },
};

function countedOnly(progress: Progress): Progress {
  const count = progress.succeededCount + progress.failedCount;
  const done = new Uint8Array(progress.done.length);
  for (let ordinal = 0; ordinal < count; ordinal += 1) done[ordinal >> 3] = (done[ordinal >> 3] ?? 0) | (1 << (ordinal & 7));
  return { ...progress, done };
}

const completionFirst: Defect = {
  name: "aggregator: completion before its progress",
  foundAs: /I6/,
  spoil: (() => {
    let waiting: (() => Promise<void>)[] = [];
    return {
      createRefreshStore: refreshStore((real) => ({
        write: async (writes, signal) => {
          waiting.push(() => real.write(writes, signal));
        },
      })),
      createPublisher: publisher((real) => ({
        publishCompletions: async (completions, lease) => {
          await real.publishCompletions(completions, lease);
          const now = waiting;
          waiting = [];
          for (const write of now) await write();
        },
      })),
    };
  })(),
};

/** A crash between the progress row and the completion loses the completion. */
const completionOnce: Defect = {
  name: "aggregator: a replay does not complete again",
  foundAs: /I6|I13/,
  spoil: (() => {
    const written = new Set<string>();
    return {
      createRefreshStore: refreshStore((real) => ({
        write: async (writes, signal) => {
          await real.write(writes, signal);
          for (const { refreshId } of writes) written.add(refreshId);
        },
      })),
      createPublisher: publisher((real) => ({
        publishCompletions: (completions, lease) => {
          const fresh = completions.filter(({ refresh_id }) => written.delete(refresh_id));
          return real.publishCompletions(fresh, lease);
        },
      })),
    };
  })(),
};

const clockInCompletion: Defect = {
  name: "aggregator: completed_at from the clock",
  foundAs: /I6/,
  spoil: {
    createPublisher: publisher((real) => ({
      publishCompletions: (completions, lease) =>
        real.publishCompletions(
          completions.map((completion) => ({ ...completion, completed_at: Date.now() * 1_000 })),
          lease,
        ),
    })),
  },
};

const blindToContent: Defect = {
  name: "aggregator: stored content is not looked at",
  foundAs: /I4|I9/,
  spoil: {
    createTokenStore: ((make) => (cassandra, untilDurable) => {
      const real = make(cassandra, untilDurable);
      return { ...real, load: async () => new Map() };
    }) as Spoil<MakeTokenStore>,
  },
};

export const aggregatorDefects: readonly Defect[] = [
  commitBeforeEffect,
  { name: "aggregator: row before state record", foundAs: /I9/, spoil: statesBehind("createTokenStore") },
  { name: "aggregator: progress before state record", foundAs: /I9|I13/, spoil: statesBehind("createRefreshStore") },
  noFence,
  staleCache,
  counter,
  completionFirst,
  completionOnce,
  clockInCompletion,
  blindToContent,
];
