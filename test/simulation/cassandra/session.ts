import { CassandraError } from "../../../services/common/cassandra/errors.ts";
import type { Cassandra } from "../../../services/common/cassandra/session.ts";
import type { Network } from "../network.ts";
import type { Tables } from "./tables.ts";

/** As the driver: longer than any answer in fine weather. */
const readTimeoutMs = 5_000;

/** The session of a process, as far as splitter and aggregator use it. A batch is one mutation: all of it, or nothing. */
export function simulatedSession(tables: Tables, network: Network): Cassandra {
  const ask = <T>(query: string, work: () => T): Promise<T> =>
    network.request({
      timeoutMs: readTimeoutMs,
      timeoutError: () => new CassandraError("timed_out", "no answer", { query }),
      serve: (reply) => reply.answer(work()),
    });
  const apply = (query: string, params: readonly unknown[]): void => tables.write(query, params, nowMicros());
  return {
    read: (query, params) => ask(query, () => tables.read(query, params)),
    readPage: () => Promise.reject(new Error("no page is read in the simulation")),
    write: (query, params) => ask(query, () => apply(query, params)),
    writeIf: () => Promise.reject(new Error("nothing is claimed in the simulation")),
    async batch(statements) {
      const [first] = statements;
      if (first === undefined) return;
      await ask(first.query, () => {
        for (const { query, params } of statements) apply(query, params);
      });
    },
    health: async () => undefined,
    close: async () => {},
  };
}

const nowMicros = (): number => Date.now() * 1_000;
