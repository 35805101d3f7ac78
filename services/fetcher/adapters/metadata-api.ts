import { LRUCache } from "lru-cache";
import type { Clock } from "../../common/clock.ts";
import type { CallResult } from "../core/results.ts";
import { type ConnectorOptions, createConnect } from "./connector.ts";
import { Deadlines } from "./deadlines.ts";
import { Exchange, type ExchangeSurroundings } from "./exchange.ts";
import { Openings } from "./openings.ts";
import { OriginPool } from "./origin-pool.ts";

export interface MetadataApiOptions extends ConnectorOptions {
  readonly clock: Clock;
  /** Over name, connection, headers and body together. */
  readonly timeoutMs: number;
  readonly bodyCapBytes: number;
}

export interface Call {
  readonly projectId: number;
  readonly origin: string;
  /** Path of the token, beginning with a slash. */
  readonly path: string;
}

/** The calls to the projects' Metadata APIs: README, The call to the Metadata API. */
export interface MetadataApi {
  /** Never rejects: whatever goes wrong is a result. */
  call(call: Call): Promise<CallResult>;
  /** `mayStart` is asked once there is a connection, for which a call may have to wait; when it says no, no call is made. */
  call(call: Call, mayStart: () => boolean): Promise<CallResult | "abandoned">;
  /** Without those that still wait for a connection. */
  readonly underWay: number;
  /** Connections that are kept for the next calls. */
  readonly idleConnections: number;
  /** Bytes of the bodies of the calls under way. */
  readonly heldBytes: number;
  /** Idle connections at once, the others when their calls end. */
  close(): void;
}

const headers = ["accept", "application/json", "accept-encoding", "identity", "user-agent", "asset-metadata-refresh/1"];

/** A pool serves one project and one origin: what a host answers out of turn on a connection can reach no other project. */
const rememberedPools = 1_000;
/** Well below the usual limit of open files, beside the calls under way. */
const mostIdle = 1_024;

export function createMetadataApi(options: MetadataApiOptions): MetadataApi {
  const pools = new LRUCache<string, OriginPool>({ max: rememberedPools, dispose: (pool) => pool.close() });
  const deadlines = new Deadlines<Exchange>(options.timeoutMs, options.clock);
  const idleCount = { now: 0, most: mostIdle };
  const shared = { idleCount, openings: new Openings(options.clock) };
  let heldBytes = 0;

  const poolOf = ({ projectId, origin }: Call): OriginPool => {
    const key = `${projectId} ${origin}`;
    const known = pools.get(key);
    if (known !== undefined) return known;
    const created = new OriginPool(origin, createConnect(options), shared);
    pools.set(key, created);
    return created;
  };
  const surroundings: ExchangeSurroundings = {
    clock: options.clock,
    bodyCapBytes: options.bodyCapBytes,
    isLate: (exchange) => deadlines.isLate(exchange),
    held: (bytes) => {
      heldBytes += bytes;
    },
  };

  function call(call: Call): Promise<CallResult>;
  function call(call: Call, mayStart: () => boolean): Promise<CallResult | "abandoned">;
  function call(call: Call, mayStart = (): boolean => true): Promise<CallResult | "abandoned"> {
    return new Promise((resolve) => {
      const pool = poolOf(call);
      pool.use((connection) => {
        if (!mayStart()) {
          connection.destroy();
          resolve("abandoned");
          return;
        }
        const exchange = new Exchange({
          surroundings,
          connection,
          settled(ended, result, sound) {
            deadlines.end(ended);
            if (sound) pool.giveBack(connection);
            else connection.destroy();
            resolve(result);
          },
        });
        // Not earlier: a host is not charged for a wait of ours.
        deadlines.start(exchange);
        connection.client.dispatch({ method: "GET", path: call.path, headers }, exchange);
      });
    });
  }

  return {
    call,
    get underWay() {
      return deadlines.size;
    },
    get idleConnections() {
      return idleCount.now;
    },
    get heldBytes() {
      return heldBytes;
    },
    close: () => pools.clear(),
  };
}
