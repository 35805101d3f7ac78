import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type Cassandra, connectCassandra, type Row } from "../../services/common/cassandra/session.ts";
import { createLogger } from "../../services/common/logging/logger.ts";
import type { RefreshCompleted, TokenOutcome, TokenState } from "../../services/common/messages/records.ts";
import { bucketOf } from "../../services/common/messages/token-id.ts";
import type { TestEnvironment } from "./environment.ts";
import type { TestProject } from "./system.ts";
import { type ReadRecord, readTopic, type TopicReader } from "./topic-reader.ts";
import { waitFor } from "./wait-for.ts";

export interface RefreshClaim {
  readonly project: TestProject;
  readonly refreshId: string;
  readonly tokenIds: readonly string[];
  /** Every token that had to fail, with its error code; all others had to succeed. */
  readonly failed?: ReadonlyMap<string, string>;
  /**
   * After a kill -9 the calls and completions of one window may come twice, and a call that was cut off counts as an attempt
   * of nobody: README, Guarantees, I7 and I8.
   */
  readonly afterKill?: boolean;
  /** How many calls the API had seen before this refresh, where it served an earlier one. */
  readonly callsBefore?: number;
}

type CheckedClaim = RefreshClaim & { readonly failed: ReadonlyMap<string, string> };

/**
 * Keeps its own books of what the services did: from the public topics, the tables and the Metadata API's call log, compared with
 * what the owner is told. `check` holds the guarantees I1 to I16 of the README for a completed refresh.
 */
export class Ledger {
  readonly states: TopicReader<TokenState>;
  readonly completions: TopicReader<RefreshCompleted>;
  readonly outcomes: TopicReader<TokenOutcome>;
  readonly cassandra: Cassandra;

  static async open({ env, topics }: TestEnvironment): Promise<Ledger> {
    const [states, completions, outcomes, cassandra] = await Promise.all([
      readTopic<TokenState>(env, topics.tokenState.name),
      readTopic<RefreshCompleted>(env, topics.refreshCompleted.name),
      readTopic<TokenOutcome>(env, topics.tokenOutcome.name),
      connectCassandra({
        contactPoints: [env.CASSANDRA_CONTACT_POINTS ?? ""],
        datacenter: env.CASSANDRA_DATACENTER ?? "",
        keyspace: env.CASSANDRA_KEYSPACE ?? "",
        logger: createLogger("ledger", "silent"),
      }),
    ]);
    return new Ledger({ states, completions, outcomes }, cassandra);
  }

  private constructor(readers: Pick<Ledger, "states" | "completions" | "outcomes">, cassandra: Cassandra) {
    this.states = readers.states;
    this.completions = readers.completions;
    this.outcomes = readers.outcomes;
    this.cassandra = cassandra;
  }

  async check(claim: RefreshClaim): Promise<void> {
    const { project, refreshId, tokenIds, failed = new Map<string, string>() } = claim;
    const completion = await this.completionOf(refreshId);
    const callCount = project.api.calls.length;
    const view = await project.owner.getRefresh(refreshId);
    const errors = await project.owner.listErrors(refreshId, 50);
    const summary = { succeeded: tokenIds.length - failed.size, failed: failed.size, pending: 0 };
    assert.partialDeepStrictEqual(view, { status: "completed", summary }, "I1, I2, I3: what the owner is told");
    const codes = new Map(errors.map(({ token_id, error_code }) => [token_id, error_code]));
    assert.deepStrictEqual(codes, failed, "I10: errors = failed tokens");
    assert.equal(errors.length, failed.size, "I10, I16: one error for each failed token");
    this.#checkCompletion({ ...claim, failed }, completion.value);
    await this.#checkRows({ ...claim, failed });
    await this.#checkTokens({ ...claim, failed }, completion);
    checkCalls(claim);
    if (!claim.afterKill) assert.equal(project.api.calls.length, callCount, "I7: no call after completion");
  }

  /**
   * The completion event, which may come a moment after the owner is told. Then everything that was there before it has been read:
   * each topic has a reader of its own, and one may be behind the other.
   */
  async completionOf(refreshId: string): Promise<ReadRecord<RefreshCompleted>> {
    const find = () => this.completions.records.find(({ key }) => key === refreshId);
    const found = await waitFor(`the completion of ${refreshId}`, find, (record) => record !== undefined);
    if (found === undefined) throw new Error("unreachable");
    await Promise.all([this.states, this.completions, this.outcomes].map((reader) => reader.caughtUp()));
    return found;
  }

  /** The row of a token, with everything that was written to it. */
  async tokenRow(collection: string, tokenId: string): Promise<Row | undefined> {
    const query = "SELECT * FROM tokens WHERE collection_address = ? AND bucket = ? AND token_id = ?";
    const [row] = await this.cassandra.read(query, [collection, bucketOf(tokenId), tokenId]);
    return row;
  }

  async close(): Promise<void> {
    await Promise.all([this.states.close(), this.completions.close(), this.outcomes.close(), this.cassandra.close()]);
  }

  #checkCompletion({ project, refreshId, tokenIds, failed, afterKill }: CheckedClaim, value: RefreshCompleted): void {
    const all = this.completions.records.filter(({ key }) => key === refreshId);
    if (!afterKill) assert.equal(all.length, 1, "I6: one completion");
    assert.equal(new Set(all.map(({ bytes }) => bytes.toString("hex"))).size, 1, "I6: of the same bytes");
    assert.equal(new Set(all.map(({ headers }) => headers.ce_id)).size, 1, "I6: and the same id");
    const byCode = [...Map.groupBy(failed, ([, code]) => code)].map(([code, list]) => [code, list.length]);
    assert.deepStrictEqual({ ...value.failed_by_code }, Object.fromEntries(byCode), "I6: it says how the tokens failed");
    const told = {
      refresh_id: refreshId,
      project_id: project.projectId,
      collection_address: project.collection,
      total: tokenIds.length,
      succeeded: tokenIds.length - failed.size,
      failed: failed.size,
    };
    assert.partialDeepStrictEqual({ ...value }, told, "I6: it says what the owner is told");
    assert.ok(value.completed_at >= value.requested_at, "I15: requested before completed");
  }

  async #checkRows({ refreshId, tokenIds, failed }: CheckedClaim): Promise<void> {
    const [row] = await this.cassandra.read("SELECT * FROM refresh_progress WHERE refresh_id = ?", [refreshId]);
    const ordinals = tokenIds.map((_, ordinal) => ordinal);
    assert.deepStrictEqual(ordinalsIn(row?.done), ordinals, "I4: every ordinal is done");
    const failedOrdinals = ordinals.filter((ordinal) => failed.has(tokenIds[ordinal] ?? ""));
    assert.deepStrictEqual(ordinalsIn(row?.failed), failedOrdinals, "I4: and exactly the failed ones failed");
    assert.equal(row?.succeeded_count, tokenIds.length - failedOrdinals.length, "I4: counts equal a recount");
    assert.equal(row?.failed_count, failedOrdinals.length, "I4: counts equal a recount");
  }

  /** Table, topic and Metadata API agree on every token that succeeded. */
  async #checkTokens({ project, tokenIds, failed }: CheckedClaim, completion: ReadRecord<RefreshCompleted>): Promise<void> {
    const latest = this.latestStates(project.collection);
    for (const tokenId of tokenIds.filter((id) => !failed.has(id))) {
      const row = await this.tokenRow(project.collection, tokenId);
      const state = latest.get(tokenId)?.value;
      const text = project.api.metadataOf(tokenId);
      const hash = createHash("sha256").update(text).digest("hex");
      assert.equal(row?.metadata, text, `I9: token ${tokenId} is stored as the API sent it`);
      assert.equal(state?.metadata, text, `I9: token ${tokenId} is published as the API sent it`);
      assert.deepStrictEqual([row?.content_hash, state?.content_hash], [hash, hash], `token ${tokenId}: hashes`);
      assert.equal(row?.version, BigInt(state?.version ?? 0), `token ${tokenId}: a version belongs to its content`);
    }
    const own = this.states.records.filter(({ value }) => value.refresh_id === completion.key);
    const late = own.filter(({ timestampMs }) => timestampMs > completion.timestampMs).map(({ key }) => key);
    assert.deepStrictEqual(late, [], "a marketplace sees each token before the completion");
  }

  /** Of each token the record with the highest version, as a marketplace keeps it. */
  latestStates(collection: string): Map<string, ReadRecord<TokenState>> {
    const latest = new Map<string, ReadRecord<TokenState>>();
    for (const record of this.states.records) {
      const { collection_address, token_id, version } = record.value;
      if (collection_address !== collection) continue;
      if (version > (latest.get(token_id)?.value.version ?? 0)) latest.set(token_id, record);
    }
    return latest;
  }
}

/** I8: at most three calls for a token, a further one only after 429 or 503. */
function checkCalls({ project, tokenIds, afterKill, callsBefore = 0 }: RefreshClaim): void {
  if (afterKill) return;
  const wanted = new Set(tokenIds);
  const byToken = Map.groupBy(
    project.api.calls.slice(callsBefore).filter(({ tokenId }) => wanted.has(tokenId)),
    ({ tokenId }) => tokenId,
  );
  for (const [tokenId, calls] of byToken) {
    assert.ok(calls.length <= 3, `I8: token ${tokenId} was called ${calls.length} times`);
    const before = calls.slice(0, -1).map(({ status }) => status);
    assert.ok(
      before.every((status) => status === 429 || status === 503),
      `I8: token ${tokenId} was called again after ${before}`,
    );
  }
}

function ordinalsIn(bitmap: unknown): number[] {
  if (!(bitmap instanceof Uint8Array)) return [];
  return [...bitmap].flatMap((byte, index) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (byte >> bit) & 1).map((bit) => index * 8 + bit),
  );
}
