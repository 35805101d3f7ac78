import { hash } from "node:crypto";
import { Client as CassandraClient, types } from "cassandra-driver";
import { Client, type Dispatcher } from "undici";
import { bucketOf } from "../../../services/common/messages/token-id.ts";
import { readMetadata } from "../../../services/fetcher/core/metadata-body.ts";
import type { LoopJob, LoopStore } from "./bare-loop.ts";
import { serveProgram } from "./program.ts";

/**
 * What the pipeline is measured against: nothing but the calls, one after the other on each of `concurrency` connections, with the
 * pipeline's own deadline (one sweep over all), cap and judgement of the body. With a store each row is inserted by itself.
 */

const timeoutMs = 3_000;
const sweepMs = 20;
const capBytes = 262_144;
const headers = ["accept", "application/json", "accept-encoding", "identity", "user-agent", "asset-metadata-refresh/1"];

class Fetch implements Dispatcher.DispatchHandler {
  readonly startedMs = performance.now();
  readonly #ended: (text: string) => void;
  readonly #failed: (error: Error) => void;
  #pieces: Buffer[] = [];
  #bytes = 0;

  constructor(ended: (text: string) => void, failed: (error: Error) => void) {
    this.#ended = ended;
    this.#failed = failed;
  }

  onRequestStart(): void {}

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    if (status !== 200) this.fail(`status ${status}`);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    if (this.#bytes > capBytes) this.fail("too large");
  }

  onResponseEnd(): void {
    const [first = Buffer.alloc(0)] = this.#pieces;
    const read = readMetadata(this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces));
    if (read.ok) this.#ended(read.text);
    else this.fail(read.detail);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#failed(error);
  }

  fail(reason: string): void {
    this.#failed(new Error(reason));
  }
}

const underWay = new Set<Fetch>();
setInterval(() => {
  const nowMs = performance.now();
  for (const fetch of underWay) {
    if (nowMs - fetch.startedMs < timeoutMs) return;
    fetch.fail("timeout");
  }
}, sweepMs);

function get(client: Client, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const fetch = new Fetch(
      (text) => {
        underWay.delete(fetch);
        resolve(text);
      },
      (error) => {
        underWay.delete(fetch);
        reject(error);
      },
    );
    underWay.add(fetch);
    client.dispatch({ method: "GET", path, headers }, fetch);
  });
}

const clients = new Map<string, Client[]>();

function connections(origin: string, count: number): Client[] {
  const known = clients.get(origin) ?? [];
  while (known.length < count) {
    known.push(new Client(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: 60_000 }));
  }
  clients.set(origin, known);
  return known.slice(0, count);
}

let cassandra: CassandraClient | undefined;
const insert =
  "INSERT INTO tokens (collection_address, bucket, token_id, metadata, content_hash, version, refreshed_at, refresh_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)";

async function store({ collection, refreshId }: LoopStore, tokenId: string, text: string): Promise<void> {
  const row = [
    collection,
    bucketOf(tokenId),
    tokenId,
    text,
    hash("sha256", text, "hex"),
    types.Long.fromNumber(Number(tokenId)),
    types.Long.fromNumber(Date.now() * 1_000),
    refreshId,
  ];
  await cassandra?.execute(insert, row, { prepare: true, consistency: types.consistencies.localQuorum });
}

serveProgram({
  connect: async ({ contactPoints, dataCenter, keyspace }: { contactPoints: string[]; dataCenter: string; keyspace: string }) => {
    cassandra = new CassandraClient({ contactPoints, localDataCenter: dataCenter, keyspace });
    await cassandra.connect();
  },
  /** Milliseconds from the first call to the last result. */
  run: async ({ url, firstTokenId, count, concurrency, store: target }: LoopJob) => {
    const { origin, pathname } = new URL(url);
    let next = firstTokenId;
    const lane = async (client: Client): Promise<void> => {
      while (next < firstTokenId + count) {
        const tokenId = String(next);
        next += 1;
        const text = await get(client, `${pathname}/${tokenId}`);
        if (target !== undefined) await store(target, tokenId, text);
      }
    };
    const begin = performance.now();
    await Promise.all(connections(origin, concurrency).map(lane));
    return performance.now() - begin;
  },
});
