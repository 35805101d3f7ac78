import { setTimeout as delay } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";
import { Client, policies, types } from "cassandra-driver";
import { systemClock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../logging/logger.ts";
import { patchBatchRequests } from "./batch-patch.ts";

export interface ClusterOptions {
  /** `host` or `host:port`, any of the cluster's nodes. */
  readonly contactPoints: readonly string[];
  /** Name of the local data centre: nodes of others are never used. */
  readonly datacenter: string;
  readonly logger: Logger;
  readonly credentials?: { readonly username: string; readonly password: string };
  readonly tls?: ConnectionOptions;
  /**
   * Time for one try on one node. The default is above the server's own limits (2 s for a write, 5 s for a read), so that its
   * answer, which says more, comes first.
   */
  readonly requestTimeoutMs?: number;
  /** How long to wait for the cluster, and for the keyspace, at start. */
  readonly connectTimeoutMs?: number;
}

/** One retry on another node, and only for requests that may be repeated: the driver asks for no others on a time-out. */
class OneMoreNode extends policies.retry.RetryPolicy {
  override onRequestError(request: policies.retry.OperationInfo, consistency: types.consistencies, error: Error) {
    return request.nbRetry > 0 ? this.rethrowResult() : super.onRequestError(request, consistency, error);
  }
}

/** The one place where consistency, retries, time-outs and reconnection are set. */
function createClient(options: ClusterOptions, keyspace: string | undefined): Client {
  patchBatchRequests();
  const requestTimeoutMs = options.requestTimeoutMs ?? 6_000;
  const client = new Client({
    contactPoints: [...options.contactPoints],
    localDataCenter: options.datacenter,
    ...(keyspace === undefined ? {} : { keyspace }),
    ...(options.credentials === undefined ? {} : { credentials: { ...options.credentials } }),
    ...(options.tls === undefined ? {} : { sslOptions: options.tls }),
    queryOptions: {
      prepare: true,
      consistency: types.consistencies.localQuorum,
      serialConsistency: types.consistencies.localSerial,
    },
    policies: {
      retry: new OneMoreNode(),
      // The default waits up to ten minutes for a node that is back.
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(250, 5_000, false),
    },
    socketOptions: { readTimeout: requestTimeoutMs, connectTimeout: 3_000 },
    protocolOptions: { port: portOf(options.contactPoints), maxSchemaAgreementWaitSeconds: 30 },
    monitorReporting: { enabled: false },
  });
  client.on("log", (level: string, source: string, message: string) => forward(options.logger, { level, source, message }));
  return client;
}

/** The nodes that are not contact points are reached on the same port; the driver would try 9042. */
function portOf(contactPoints: readonly string[]): number {
  const [port = 9042] = contactPoints.flatMap((point) => /^(?:\[.+\]|[^:]+):([0-9]+)$/.exec(point)?.[1] ?? []);
  return Number(port);
}

/**
 * A connected client of the driver. Waits for the cluster and for the keyspace, saying so in the log, and rejects with the last
 * reason after connectTimeoutMs (60 s).
 */
export async function openClient(options: ClusterOptions, keyspace?: string): Promise<Client> {
  const timeoutMs = options.connectTimeoutMs ?? 60_000;
  const startedMs = systemClock.monotonicMs();
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 2_000)) {
    const client = createClient(options, keyspace);
    try {
      await client.connect();
      return client;
    } catch (error) {
      await client.shutdown();
      const waitedMs = systemClock.monotonicMs() - startedMs;
      if (waitedMs + pauseMs > timeoutMs) throw new Error(explain(options, keyspace, error), { cause: error });
      options.logger.warn({ reason: messageOf(error), waitedMs: Math.round(waitedMs), timeoutMs }, "cassandra.waiting");
      await delay(pauseMs);
    }
  }
}

function explain(options: ClusterOptions, keyspace: string | undefined, error: unknown): string {
  const target = keyspace === undefined ? "" : ` with keyspace ${keyspace}`;
  return `Cassandra at ${options.contactPoints.join(", ")} (data centre ${options.datacenter})${target} cannot be used: ${messageOf(error)}`;
}

/** The driver's errors are tried again or reach the caller: one level down each. */
function forward(logger: Logger, { level, source, message }: { level: string; source: string; message: string }): void {
  if (level === "error") logger.warn({ source, cassandra: message }, "cassandra.client");
  else if (level === "warning") logger.info({ source, cassandra: message }, "cassandra.client");
  else if (level === "info") logger.debug({ source, cassandra: message }, "cassandra.client");
}
