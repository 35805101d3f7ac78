import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import Router from "@koa/router";
import { Client, types } from "cassandra-driver";
import { Redis } from "ioredis";
import { Kafka, logLevel, type Producer } from "kafkajs";
import Koa, { type Context } from "koa";
import secp256k1 from "secp256k1";
import { v7 as uuidv7 } from "uuid";
import { hashMessage, keccak256 } from "viem/utils";
import { createCodec } from "../../services/common/kafka/codec.ts";
import type { Codec } from "../../services/common/kafka/contracts.ts";
import { patchIdleTimer } from "../../services/common/kafka/idle-timer.ts";
import { loadTopics } from "../../services/common/kafka/topics.ts";
import type { RefreshRequested } from "../../services/common/messages/records.ts";
import { serveProgram } from "./programs/program.ts";

/**
 * The least that can be called the same API: Koa, the native curve, and the drivers as they come, with the same reads, the same
 * rows, the same limits and the same acknowledged record for each request. No validation to speak of, no metrics, no log, no time-outs.
 */

interface Parts {
  readonly cassandra: Client;
  readonly redis: Redis;
  readonly producer: Producer;
  readonly codec: Codec;
  readonly topic: string;
}

serveProgram({
  listen: async (environment: Record<string, string>) => {
    const parts = await connect(environment);
    const router = new Router();
    router.post("/v1/metadata-refreshes", (ctx: Context) => request(ctx, parts));
    router.get("/v1/metadata-refreshes/:refresh_id", (ctx: Context) => query(ctx, String(ctx.params.refresh_id), parts));
    const listening = new Koa().use(router.routes()).listen(0, "127.0.0.1");
    listening.keepAliveTimeout = 65_000;
    await new Promise((resolve) => listening.once("listening", resolve));
    return (listening.address() as AddressInfo).port;
  },
});

async function connect(environment: Record<string, string>): Promise<Parts> {
  const topics = loadTopics({ prefix: environment.TOPIC_PREFIX ?? "", delays: "" });
  const topic = topics.refreshRequested;
  const cassandra = new Client({
    contactPoints: (environment.CASSANDRA_CONTACT_POINTS ?? "").split(","),
    localDataCenter: environment.CASSANDRA_DATACENTER ?? "",
    keyspace: environment.CASSANDRA_KEYSPACE ?? "",
    queryOptions: { prepare: true, consistency: types.consistencies.localQuorum },
  });
  patchIdleTimer();
  const brokers = (environment.KAFKA_BROKERS ?? "").split(",");
  const producer = new Kafka({ brokers, clientId: "bare", logLevel: logLevel.NOTHING }).producer();
  await Promise.all([cassandra.connect(), producer.connect()]);
  const redis = new Redis(environment.REDIS_URL ?? "", { keyPrefix: `${environment.REDIS_KEY_PREFIX}bare:` });
  const codec = await createCodec({ registryUrl: environment.SCHEMA_REGISTRY_URL ?? "", uses: [topic] });
  return { cassandra, redis, producer, codec, topic: topic.name };
}

const limit = 1_000_000;
const retentionSeconds = 90 * 86_400;

async function request(ctx: Context, parts: Parts): Promise<void> {
  const signer = await admit(ctx, parts);
  if (signer === undefined) return;
  const { collection_address: address, token_ids: tokenIds } = JSON.parse(await bodyOf(ctx.req));
  const collection = await one(parts, selectCollection, [address]);
  const project = await one(parts, selectProject, [collection?.project_id]);
  if (collection === undefined || project?.owner_address !== signer) return ctx.throw(403);
  const requestedAt = Date.now() * 1_000;
  const record: RefreshRequested = {
    refresh_id: uuidv7(),
    project_id: Number(collection.project_id),
    collection_address: address,
    token_ids: tokenIds,
    requested_at: requestedAt,
    deadline: requestedAt + 48 * 3_600_000_000,
    metadata_api_url: collection.metadata_api_url,
    token_policy: collection.token_policy,
    max_concurrency: null,
    max_requests_per_second: null,
  };
  const hour = Math.floor(requestedAt / 3_600_000_000);
  const used = Number(await parts.redis.eval(takeScript, 1, `hour:${record.project_id}:${hour}`, record.refresh_id, limit));
  if (used < 0) return ctx.throw(429);
  const value = parts.codec.encode(parts.topic, record);
  await parts.producer.send({ topic: parts.topic, acks: -1, messages: [{ key: record.refresh_id, value }] });
  await writeRows(record, parts);
  ctx.status = 202;
  ctx.set({
    "x-svc-refreshes-limit": String(limit),
    "x-svc-remaining-refreshes": String(limit - used),
    "x-svc-refresh-limit-reset": String((hour + 1) * 3_600),
  });
  ctx.body = { refresh_id: record.refresh_id };
}

async function query(ctx: Context, refreshId: string, parts: Parts): Promise<void> {
  const signer = await admit(ctx, parts);
  if (signer === undefined) return;
  const [facts, progress] = await Promise.all([one(parts, selectRefresh, [refreshId]), one(parts, selectProgress, [refreshId])]);
  const project = await one(parts, selectProject, [facts?.project_id]);
  if (facts === undefined || project?.owner_address !== signer) return ctx.throw(404);
  const succeeded = progress?.succeeded_count ?? 0;
  const failed = progress?.failed_count ?? 0;
  const completedAt = Number(progress?.completed_at ?? 0);
  ctx.body = {
    refresh_id: refreshId,
    status: completedAt === 0 ? "in_progress" : "completed",
    collection_address: facts.collection_address,
    started_at: new Date(Number(facts.requested_at) / 1_000).toISOString(),
    completed_at: completedAt === 0 ? null : new Date(completedAt / 1_000).toISOString(),
    summary: { succeeded, failed, pending: facts.total - succeeded - failed },
  };
}

/** Known keys, as the service remembers them too. */
const rates = new Map<string, number>();

/** The signer's address; undefined when the answer is given already. */
async function admit(ctx: Context, parts: Parts): Promise<string | undefined> {
  const hash = createHash("sha256").update(ctx.get("x-api-key")).digest("hex");
  const rate = rates.get(hash) ?? Number((await one(parts, selectKey, [hash]))?.requests_per_second ?? 0);
  rates.set(hash, rate);
  if (Number(await parts.redis.eval(rateScript, 1, `rate:${hash}`, rate)) < 0) ctx.throw(429);
  const signer = signerOf(ctx);
  if (signer !== ctx.get("x-svc-eth-address").toLowerCase()) ctx.throw(401);
  return signer;
}

function signerOf(ctx: Context): string {
  const signature = Buffer.from(ctx.get("x-svc-eth-signature").slice(2), "hex");
  const recovery = ((signature[64] ?? 0) + 1) % 2;
  const digest = hashMessage(ctx.get("x-svc-eth-timestamp"), "bytes");
  const key = secp256k1.ecdsaRecover(signature.subarray(0, 64), recovery, digest, false);
  return `0x${keccak256(key.subarray(1)).slice(-40)}`;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function one({ cassandra }: Parts, query: string, params: unknown[]): Promise<types.Row | undefined> {
  return (await cassandra.execute(query, params)).first() ?? undefined;
}

async function writeRows(record: RefreshRequested, { cassandra }: Parts): Promise<void> {
  const { refresh_id: id, project_id: project, collection_address: collection, requested_at: at } = record;
  const month = new Date(at / 1_000).toISOString().slice(0, 7);
  const using = [at, retentionSeconds];
  await Promise.all([
    cassandra.execute(insertRefresh, [id, project, collection, at, record.token_ids.length, ...using]),
    cassandra.execute(insertTokens, [id, record.token_ids, ...using]),
    cassandra.execute(insertByProject, [project, month, at, id, collection, ...using]),
    cassandra.execute(insertByCollection, [project, collection, month, at, id, ...using]),
  ]);
}

const selectCollection =
  "SELECT project_id, metadata_api_url, token_policy, max_concurrency, max_requests_per_second FROM collections WHERE collection_address = ?";
const selectProject = "SELECT owner_address, refreshes_per_hour FROM projects WHERE project_id = ?";
const selectKey = "SELECT project_id, requests_per_second FROM api_keys WHERE key_hash = ?";
const selectRefresh = "SELECT project_id, collection_address, requested_at, total FROM refreshes WHERE refresh_id = ?";
const selectProgress = "SELECT succeeded_count, failed_count, completed_at FROM refresh_progress WHERE refresh_id = ?";
const insertRefresh =
  "INSERT INTO refreshes (refresh_id, project_id, collection_address, requested_at, total) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const insertTokens = "INSERT INTO refresh_tokens (refresh_id, token_ids) VALUES (?, ?) USING TIMESTAMP ? AND TTL ?";
const insertByProject =
  "INSERT INTO refreshes_by_project (project_id, month, created_at, refresh_id, collection_address) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";
const insertByCollection =
  "INSERT INTO refreshes_by_collection (project_id, collection_address, month, created_at, refresh_id) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?";

/** A sliding second, and the set of an hour's refreshes: what the service keeps in Redis, in one call each. Below 0: refused. */
const rateScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', KEYS[1], 0)
while oldest and tonumber(oldest) <= now - 1000 do
  redis.call('LPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], 0)
end
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[1]) then return -1 end
redis.call('RPUSH', KEYS[1], now)
redis.call('PEXPIRE', KEYS[1], 1000)
return 1
`;
const takeScript = `
local used = redis.call('SCARD', KEYS[1])
if used >= tonumber(ARGV[2]) then return -1 end
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[1], 7200)
return used + 1
`;
