import { type Client, policies, type QueryOptions, type types } from "cassandra-driver";
import { systemClock } from "../clock.ts";
import type { Histogram, Metrics } from "../metrics/metrics.ts";
import { type ClusterOptions, openClient } from "./client.ts";
import { type CassandraError, describeFailure } from "./errors.ts";
import { Gate } from "./gate.ts";
import { parametersOf, type Row, rowOf } from "./values.ts";

export type { Row } from "./values.ts";

/** One CQL statement; `USING TIMESTAMP ?` and `USING TTL ?` stand in its text. Values go in and out as values.ts says. */
export interface Statement {
  readonly query: string;
  readonly params: readonly unknown[];
}

/**
 * What the services see of Cassandra: LOCAL_QUORUM, LOCAL_SERIAL for lightweight transactions, everything prepared, requests
 * bounded in number and time. Every method rejects with CassandraError, whose `failure` says whether to try again.
 *
 * One row has one kind of writer: what is written with `writeIf` is changed with `writeIf` alone. A plain write carries this
 * process's clock, a lightweight transaction the cluster's, so a plain write after it may lose to it without a word.
 */
export interface Cassandra {
  /** All rows of the answer: for bounded partitions. */
  read(query: string, params: readonly unknown[]): Promise<Row[]>;
  /**
   * One page of the answer; `pageState` is there when more follow. A page state that came from outside and was tampered with
   * fails as `invalid`.
   */
  readPage(query: string, params: readonly unknown[], page: { pageSize: number; pageState?: string }): Promise<Page>;
  /** One idempotent write: it may be sent twice. */
  write(query: string, params: readonly unknown[]): Promise<void>;
  /**
   * A lightweight transaction, sent once. Not applied: `row` is what stands there, empty when nothing does. When it fails as
   * `timed_out` nobody knows whether it was applied: read back, or repeat it where its repetition is harmless.
   */
  writeIf(query: string, params: readonly unknown[]): Promise<{ applied: boolean; row: Row }>;
  /** Unlogged, **one partition**: then it is one mutation and atomic. Idempotent. At most 512 KiB: README, Decisions. */
  batch(statements: readonly Statement[]): Promise<void>;
  /** Asks the keyspace a question at LOCAL_QUORUM: undefined is well. For /readyz. */
  health(): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface Page {
  readonly rows: Row[];
  readonly pageState?: string;
}

export interface CassandraOptions extends ClusterOptions {
  readonly keyspace: string;
  /** Requests on their way at once; the others wait. 64 to 128 is where a node's throughput levels off. */
  readonly maxInFlight?: number;
  /** For callers with somebody waiting: refuse a request that waited this long for its turn. Default: wait. */
  readonly maxWaitMs?: number;
  readonly metrics?: Metrics;
}

/** Connects, waiting for the cluster and the keyspace; rejects with an explanation after connectTimeoutMs (60 s). */
export async function connectCassandra(options: CassandraOptions): Promise<Cassandra> {
  const client = await openClient(options, options.keyspace);
  options.logger.info({ keyspace: options.keyspace, hosts: client.hosts.length }, "cassandra.connected");
  return new Session(client, options);
}

type Operation = "read" | "write" | "write_if" | "batch";

const repeatable: QueryOptions = { isIdempotent: true };
// A retry could find the first try's own effect and report it as somebody else's.
const once: QueryOptions = { isIdempotent: false, retry: new policies.retry.FallthroughRetryPolicy() };

class Session implements Cassandra {
  readonly #client: Client;
  readonly #gate: Gate;
  readonly #durations: Histogram<"operation" | "result"> | undefined;

  constructor(client: Client, options: CassandraOptions) {
    this.#client = client;
    this.#gate = new Gate({
      limit: options.maxInFlight ?? 128,
      maxWaitMs: options.maxWaitMs ?? Number.POSITIVE_INFINITY,
      monotonicMs: systemClock.monotonicMs,
    });
    this.#durations = options.metrics?.duration(
      "cassandra_request_duration_seconds",
      "Requests to Cassandra, waiting included.",
      {
        operation: ["read", "write", "write_if", "batch"],
        result: ["ok", "unavailable", "timed_out", "invalid"],
      },
    );
  }

  async read(query: string, params: readonly unknown[]): Promise<Row[]> {
    const rows: Row[] = [];
    let pageState: string | undefined;
    do {
      const page = await this.readPage(query, params, { pageSize: 5_000, ...(pageState === undefined ? {} : { pageState }) });
      rows.push(...page.rows);
      pageState = page.pageState;
    } while (pageState !== undefined);
    return rows;
  }

  async readPage(query: string, params: readonly unknown[], page: { pageSize: number; pageState?: string }): Promise<Page> {
    const options = {
      ...repeatable,
      fetchSize: page.pageSize,
      ...(page.pageState === undefined ? {} : { pageState: page.pageState }),
    };
    const result = await this.#run("read", query, () => this.#client.execute(query, parametersOf(params), options));
    const rows = (result.rows ?? []).map(rowOf);
    // The declared type is string, the value is null when nothing follows.
    return result.pageState ? { rows, pageState: result.pageState } : { rows };
  }

  async write(query: string, params: readonly unknown[]): Promise<void> {
    await this.#run("write", query, () => this.#client.execute(query, parametersOf(params), repeatable));
  }

  async writeIf(query: string, params: readonly unknown[]): Promise<{ applied: boolean; row: Row }> {
    const result = await this.#run("write_if", query, () => this.#client.execute(query, parametersOf(params), once));
    const { "[applied]": applied, ...row } = rowOf(result.first());
    return { applied: applied === true, row };
  }

  async batch(statements: readonly Statement[]): Promise<void> {
    const first = statements[0];
    if (first === undefined) return;
    await this.#run("batch", first.query, () => {
      const queries = statements.map(({ query, params }) => ({ query, params: parametersOf(params) }));
      return this.#client.batch(queries, { ...repeatable, prepare: true, logged: false });
    });
  }

  async health(): Promise<string | undefined> {
    try {
      // Outside the gate: whether the cluster answers, not whether this process is busy.
      await this.#client.execute("SELECT project_id FROM projects WHERE project_id = 0", [], {
        ...repeatable,
        readTimeout: 2_000,
      });
      return undefined;
    } catch (error) {
      return `Cassandra does not answer: ${describeFailure(error).message}`;
    }
  }

  close(): Promise<void> {
    return this.#client.shutdown();
  }

  async #run(operation: Operation, query: string, send: () => Promise<types.ResultSet>): Promise<types.ResultSet> {
    const observe = this.#durations?.startTimer({ operation });
    try {
      const result = await this.#gate.run(send);
      observe?.({ result: "ok" });
      return result;
    } catch (thrown) {
      const error: CassandraError = describeFailure(thrown, query);
      observe?.({ result: error.failure });
      throw error;
    }
  }
}
