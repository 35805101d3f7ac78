import { createHash } from "node:crypto";
import type { Cassandra, Row } from "../../common/cassandra/session.ts";
import type { Clock } from "../../common/clock.ts";
import { messageOf } from "../../common/errors.ts";
import type { Logger } from "../../common/logging/logger.ts";
import type { RefreshRequested } from "../../common/messages/records.ts";
import type { Claim, ClaimsPort, Draft } from "../core/acceptance.ts";

export interface ClaimsOptions {
  readonly cassandra: Cassandra;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly ttlSeconds: number;
  /** The record in the bytes of an earlier request. Rejects when it cannot be read. */
  decode(bytes: Buffer): Promise<RefreshRequested>;
}

/** A claim changes hands between two looks at it: so often is once too often to be chance. */
const maxTries = 5;

/**
 * Rows outlive their claims: whether a claim is over is decided here, by its time, because cells written at different moments
 * never expire together. What is changed later goes first, and by then nobody looks at it any more.
 */
const claimOutlivesSeconds = 60;
const changeOutlivesSeconds = 30;

/**
 * Idempotency keys in Cassandra, by lightweight transactions alone. A row says which refresh a key stands for and how that
 * ended: `pending` until it is known, `accepted` when Kafka has it, `refused` when nothing exists of it. A repetition marks a
 * pending claim as `resumed` before it carries it out: from then on the request that made the claim does not know any more
 * whether anything was sent, and may not free the key.
 */
export class IdempotencyClaims implements ClaimsPort {
  readonly #options: ClaimsOptions;

  constructor(options: ClaimsOptions) {
    this.#options = options;
  }

  async claim(key: string, draft: Draft): Promise<Claim> {
    const { cassandra, ttlSeconds } = this.#options;
    const { project_id: project, refresh_id: id, requested_at: requestedAt } = draft.record;
    const fingerprint = fingerprintOf(draft.record);
    const cells = [id, requestedAt, fingerprint, draft.bytes];
    const rowTtl = ttlSeconds + claimOutlivesSeconds;
    for (let tries = 0; tries < maxTries; tries += 1) {
      const { applied, row } = await cassandra.writeIf(insertClaim, [project, key, ...cells, rowTtl]);
      if (applied) return { state: "pending", draft, resumed: false };
      const over = this.#ageSeconds(Number(row.requested_at)) >= ttlSeconds;
      if (!over && row.fingerprint !== fingerprint) return { state: "other_request" };
      if (!over && row.state !== "refused") {
        const standing = await this.#standing(key, project, row);
        if (standing !== undefined) return standing;
        continue;
      }
      const replaced = await cassandra.writeIf(over ? replaceOver : replaceRefused, [
        rowTtl,
        ...cells,
        project,
        key,
        row.refresh_id,
      ]);
      if (replaced.applied) return { state: "pending", draft, resumed: false };
    }
    throw new Error("the idempotency key changes hands all the time");
  }

  async accept(key: string, record: RefreshRequested): Promise<void> {
    await this.#settle(acceptClaim, key, record);
  }

  async release(key: string, record: RefreshRequested, resumed: boolean): Promise<boolean> {
    return (await this.#settle(resumed ? refuseResumed : refuseClaim, key, record)) === true;
  }

  /** undefined when nobody can tell. */
  async #settle(query: string, key: string, record: RefreshRequested): Promise<boolean | undefined> {
    const { cassandra, logger } = this.#options;
    try {
      const values = [this.#leftSeconds(record.requested_at), record.project_id, key, record.refresh_id];
      return (await cassandra.writeIf(query, values)).applied;
    } catch (error) {
      logger.warn({ refreshId: record.refresh_id, reason: messageOf(error) }, "idempotency_claim.left_pending");
      return undefined;
    }
  }

  /** How long a change of the state stands in the row. */
  #leftSeconds(requestedAtMicros: number): number {
    return Math.max(1, this.#options.ttlSeconds - this.#ageSeconds(requestedAtMicros) + changeOutlivesSeconds);
  }

  #ageSeconds(requestedAtMicros: number): number {
    return Math.floor((this.#options.clock.nowMs() - requestedAtMicros / 1000) / 1000);
  }

  /** undefined: changed since it was read. */
  async #standing(key: string, project: number, row: Row): Promise<Claim | undefined> {
    if (row.state === "accepted") return { state: "accepted", refreshId: String(row.refresh_id) };
    if (!Buffer.isBuffer(row.record)) throw new Error("a pending claim has no record");
    const record = await this.#options.decode(row.record);
    if (row.state === "pending") {
      const values = [this.#leftSeconds(record.requested_at), project, key, row.refresh_id];
      const { applied } = await this.#options.cassandra.writeIf(resumeClaim, values);
      if (!applied) return undefined;
    }
    return { state: "pending", draft: { record, bytes: row.record }, resumed: true };
  }
}

/** The request in one spelling: its collection and its tokens in their order. */
function fingerprintOf({ collection_address: collection, token_ids: tokenIds }: RefreshRequested): string {
  return createHash("sha256")
    .update(`${collection}\n${tokenIds.join(",")}`)
    .digest("hex");
}

const insertClaim = `INSERT INTO idempotency_keys (project_id, key, refresh_id, requested_at, fingerprint, record, state)
  VALUES (?, ?, ?, ?, ?, ?, 'pending') IF NOT EXISTS USING TTL ?`;
const replaceOver = `UPDATE idempotency_keys USING TTL ?
  SET refresh_id = ?, requested_at = ?, fingerprint = ?, record = ?, state = 'pending'
  WHERE project_id = ? AND key = ? IF refresh_id = ?`;
const replaceRefused = `${replaceOver} AND state = 'refused'`;
/** Kafka has it, whatever another request under the same key thought before. The record has served. */
const acceptClaim = `UPDATE idempotency_keys USING TTL ? SET state = 'accepted', record = 0x
  WHERE project_id = ? AND key = ? IF refresh_id = ?`;
const resumeClaim = `UPDATE idempotency_keys USING TTL ? SET state = 'resumed'
  WHERE project_id = ? AND key = ? IF refresh_id = ? AND state = 'pending'`;
const refuseClaim = `UPDATE idempotency_keys USING TTL ? SET state = 'refused'
  WHERE project_id = ? AND key = ? IF refresh_id = ? AND state = 'pending'`;
const refuseResumed = `UPDATE idempotency_keys USING TTL ? SET state = 'refused'
  WHERE project_id = ? AND key = ? IF refresh_id = ? AND state = 'resumed'`;
