import type { createDeadLetters } from "../../../services/common/kafka/consume/dead-letters.ts";
import type { startWindowConsumer, WindowConsumer } from "../../../services/common/kafka/consume/window-consumer.ts";
import type { DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { TokenOutcome, TokenRefresh } from "../../../services/common/messages/records.ts";
import type { createOutbox } from "../../../services/fetcher/adapters/outbox.ts";
import type { Defect, Spoil } from "./defect.ts";

type StartWindow = typeof startWindowConsumer<TokenRefresh>;
type MakeOutbox = typeof createOutbox;
type WindowOptions = Parameters<StartWindow>[1];

const window = (
  spoilOptions: (options: WindowOptions, consumer: () => WindowConsumer | undefined) => Partial<WindowOptions>,
  spoilConsumer: (real: WindowConsumer) => Partial<WindowConsumer> = () => ({}),
): Spoil<StartWindow> => {
  return (make) => async (kafka, options) => {
    let consumer: WindowConsumer | undefined;
    const real = await make(kafka, { ...options, ...spoilOptions(options, () => consumer) });
    consumer = real;
    // Not a copy: what the consumer has are getters and methods of a class.
    return new Proxy(real, {
      get: (target, name) => {
        const spoilt = spoilConsumer(real)[name as keyof WindowConsumer];
        const value = spoilt ?? Reflect.get(target, name);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
};

const commitBeforeOutcome: Defect = {
  name: "fetcher: commit before the outcome",
  foundAs: /I13/,
  spoil: {
    startWindowConsumer: window((options, consumer) => ({
      onRecords: (records, batch) => {
        options.onRecords(records, batch);
        for (const record of records) consumer()?.finish(record);
      },
    })),
  },
};

/** What finishes first takes everything before it along. */
const highestFinished: Defect = {
  name: "fetcher: commit of the highest finished record",
  foundAs: /I13/,
  spoil: {
    startWindowConsumer: ((make) => async (kafka, options) => {
      const handedOut: DecodedRecord<TokenRefresh>[] = [];
      const spoilt = window(
        () => ({
          onRecords: (records, batch) => {
            handedOut.push(...records);
            options.onRecords(records, batch);
          },
        }),
        (real) => ({
          finish: (record) => {
            for (const { topic, partition, offset } of handedOut) {
              if (topic === record.topic && partition === record.partition && offset < record.offset) {
                real.finish({ topic, partition, offset });
              }
            }
            real.finish(record);
          },
        }),
      );
      return spoilt(make)(kafka, options);
    }) as Spoil<StartWindow>,
  },
};

const noLease: Defect = {
  name: "fetcher: no lease",
  foundAs: /the lease/,
  spoil: {
    startWindowConsumer: window(
      () => ({}),
      () => ({ mayAct: () => true }),
    ),
  },
};

/** The broker's clock as somebody might guess it. */
const early: Defect = {
  name: "fetcher: delays end early",
  foundAs: /I8/,
  spoil: {
    startWindowConsumer: window((options) => ({
      tiers: options.tiers.map((tier) => ({ ...tier, delayMs: (tier.delayMs ?? 0) / 4 })),
    })),
  },
};

const outbox = (spoil: (real: ReturnType<MakeOutbox>) => Partial<ReturnType<MakeOutbox>>): Spoil<MakeOutbox> => {
  return (make) => (parts) => {
    const real = make(parts);
    return { deliver: real.deliver, move: real.move, ...spoil(real), pendingBytes: 0 };
  };
};

const unacknowledged: Defect = {
  name: "fetcher: an outcome counts before it is acknowledged",
  foundAs: /I13/,
  spoil: {
    createOutbox: outbox((real) => ({
      deliver: async (conclusion, wanted) => {
        void real.deliver(conclusion, wanted);
        return "acknowledged";
      },
    })),
  },
};

const lostRetry: Defect = {
  name: "fetcher: a retry is forgotten",
  foundAs: /I13/,
  spoil: {
    createOutbox: outbox((real) => ({
      deliver: (conclusion, wanted) =>
        conclusion.kind === "retry" ? Promise.resolve("acknowledged" as const) : real.deliver(conclusion, wanted),
    })),
  },
};

const endlessRetries: Defect = {
  name: "fetcher: attempts are not counted",
  foundAs: /I8|I13|rest/,
  spoil: {
    createOutbox: outbox((real) => ({
      deliver: (conclusion, wanted) =>
        real.deliver(
          conclusion.kind === "retry" ? { ...conclusion, refresh: { ...conclusion.refresh, attempt: 1 } } : conclusion,
          wanted,
        ),
    })),
  },
};

const serialisedAgain: Defect = {
  name: "fetcher: metadata is serialised again",
  foundAs: /I9/,
  spoil: {
    createOutbox: outbox((real) => ({
      deliver: (conclusion, wanted) =>
        real.deliver(conclusion.kind === "outcome" ? { ...conclusion, outcome: again(conclusion.outcome) } : conclusion, wanted),
    })),
  },
};

function again(outcome: TokenOutcome): TokenOutcome {
  return outcome.metadata === null ? outcome : { ...outcome, metadata: JSON.stringify(JSON.parse(outcome.metadata)) };
}

const noDeadLetters: Defect = {
  name: "what cannot be read is skipped",
  foundAs: /I13|I14/,
  spoil: { createDeadLetters: (() => () => ({ put: async () => {} })) as Spoil<typeof createDeadLetters> },
};

const causeless: Defect = {
  name: "dead letters without a cause",
  foundAs: /I14/,
  spoil: {
    createDeadLetters: ((make) => (options) => {
      const real = make(options);
      return { put: (record, _cause, _message, signal) => real.put(record, "crashed", "", signal) };
    }) as Spoil<typeof createDeadLetters>,
  },
};

export const fetcherDefects: readonly Defect[] = [
  commitBeforeOutcome,
  highestFinished,
  noLease,
  early,
  unacknowledged,
  lostRetry,
  endlessRetries,
  serialisedAgain,
  noDeadLetters,
  causeless,
];
