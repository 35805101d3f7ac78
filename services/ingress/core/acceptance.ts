import { type Answer, refuse } from "../../common/http/answer.ts";
import type { SendResult } from "../../common/kafka/contracts.ts";
import type { RefreshRequested } from "../../common/messages/records.ts";
import { type Hour, hourOf, limitHeaders, secondsUntilReset } from "./hour.ts";

/** A place in the hour of a project: idempotent by the refresh's id. */
export interface Place {
  readonly projectId: number;
  readonly hour: Hour;
  readonly limit: number;
  readonly refreshId: string;
}

export interface LimitPort {
  /** Takes a place, or finds it taken by this very id. Rejects when nobody can be asked. */
  take(place: Place): Promise<{ readonly granted: boolean; readonly used: number }>;
  /** Never rejects: a place that stays taken is the lesser harm. */
  giveBack(place: Place): Promise<void>;
  look(place: Omit<Place, "refreshId">): Promise<number>;
}

/** A refresh with the very bytes that were, or will be, published for it. */
export interface Draft {
  readonly record: RefreshRequested;
  readonly bytes: Buffer;
}

/** What stands under an Idempotency-Key after it was claimed. */
export type Claim =
  /** Ours to carry out. `resumed`: left behind by a request whose end nobody knows; it may have been sent then. */
  | { readonly state: "pending"; readonly draft: Draft; readonly resumed: boolean }
  | { readonly state: "accepted"; readonly refreshId: string }
  /** Used for another request. */
  | { readonly state: "other_request" };

export interface ClaimsPort {
  /** Rejects when the claims cannot be asked. */
  claim(key: string, draft: Draft): Promise<Claim>;
  /** After the record was acknowledged. Never rejects: a claim that stays pending publishes the same bytes once more. */
  accept(key: string, record: RefreshRequested): Promise<void>;
  /**
   * After a definite refusal; `resumed` as the claim said. Never rejects; false: accepted, or taken up by a repetition that may be
   * sending it, or nobody can tell.
   */
  release(key: string, record: RefreshRequested, resumed: boolean): Promise<boolean>;
}

export interface AcceptancePorts {
  readonly limit: LimitPort;
  readonly claims: ClaimsPort;
  publish(draft: Draft): Promise<SendResult>;
  /** Never rejects and takes a bounded time: what is published happens, and the splitter writes the rows again. */
  writeRows(record: RefreshRequested): Promise<void>;
}

export interface Order {
  readonly draft: Draft;
  /** Of the project. */
  readonly refreshesPerHour: number;
  readonly idempotencyKey: string | undefined;
  readonly nowMs: number;
}

/**
 * Accepts a refresh: claim the idempotency key, take a place in the hour, publish, write the rows, answer 202. Publishing is
 * the point of no return: before it a refusal leaves nothing behind, after it the refresh happens whatever else fails.
 * Rejects, without effect, when neither the claims nor the limit can be asked.
 */
export async function accept(order: Order, ports: AcceptancePorts): Promise<Answer> {
  const { draft, idempotencyKey } = order;
  if (idempotencyKey === undefined) return new Acceptance(order, { draft, resumed: false }, ports).carryOut();
  const claim = await ports.claims.claim(idempotencyKey, draft);
  if (claim.state === "pending") return new Acceptance(order, claim, ports).carryOut();
  if (claim.state === "accepted") return new Acceptance(order, { draft, resumed: false }, ports).repeat(claim.refreshId);
  return refuse(422, "idempotency_key_reused", "this Idempotency-Key was used for another request");
}

class Acceptance {
  readonly #order: Order;
  readonly #draft: Draft;
  readonly #resumed: boolean;
  readonly #ports: AcceptancePorts;
  readonly #place: Place;

  constructor(order: Order, { draft, resumed }: { readonly draft: Draft; readonly resumed: boolean }, ports: AcceptancePorts) {
    this.#order = order;
    this.#draft = draft;
    this.#resumed = resumed;
    this.#ports = ports;
    const { project_id: projectId, refresh_id: refreshId, requested_at: requestedAt } = draft.record;
    this.#place = { projectId, hour: hourOf(requestedAt), limit: order.refreshesPerHour, refreshId };
  }

  async carryOut(): Promise<Answer> {
    const taken = await this.#ports.limit.take(this.#place);
    // Asked before anything is sent: a refresh that is accepted must not be answered with a failure to count.
    const used = this.#isCurrent() ? taken.used : await this.#look();
    if (!taken.granted) return this.#refuseHour(used);
    const sent = await this.#ports.publish(this.#draft);
    if (sent.ok) return this.#confirm(used);
    // That nothing was sent now says nothing of the time before.
    return sent.reason === "unknown" || this.#resumed ? this.#leaveOpen(used) : this.#withdraw(used);
  }

  /** The answer of the first request once more; it costs nothing. */
  async repeat(refreshId: string): Promise<Answer> {
    return receipt(refreshId, this.#headers(await this.#look()));
  }

  async #confirm(used: number): Promise<Answer> {
    const { claims, writeRows } = this.#ports;
    const { idempotencyKey: key } = this.#order;
    const { record } = this.#draft;
    await Promise.all([writeRows(record), key === undefined ? undefined : claims.accept(key, record)]);
    return receipt(record.refresh_id, this.#headers(used));
  }

  /**
   * A claim that may have been sent keeps its key while its hour lasts: who took it up before may find a place in it. Of an hour
   * that is over it cannot be carried out any more, so its key is freed for the present one.
   */
  async #refuseHour(used: number): Promise<Answer> {
    if (!this.#resumed || !this.#isCurrent()) await this.#release();
    const message = `the project has used its ${this.#place.limit} refreshes of the hour`;
    const retryAfter = this.#isCurrent() ? secondsUntilReset(this.#place.hour, this.#order.nowMs) : 1;
    const headers = { ...this.#headers(used), "retry-after": String(retryAfter) };
    return refuse(429, "refresh_limit_exceeded", message, { headers });
  }

  /** Nothing was sent and nothing will be, unless the claim stays: then the place, which is the claim's own, stays taken too. */
  async #withdraw(used: number): Promise<Answer> {
    if (!(await this.#release())) return this.#leaveOpen(used);
    await this.#ports.limit.giveBack(this.#place);
    const headers = { ...this.#headers(used - 1), "retry-after": "5" };
    return refuse(503, "unavailable", "the refresh cannot be taken now; nothing was requested", { headers });
  }

  /** The refresh may exist, so its place stays taken and its claim pending. */
  #leaveOpen(used: number): Answer {
    const { refresh_id: refreshId } = this.#draft.record;
    const message =
      `refresh ${refreshId} may have been requested: it exists when it can be queried; ` +
      "a repetition is safe only under the same Idempotency-Key";
    return refuse(503, "acceptance_unknown", message, { headers: { ...this.#headers(used), "retry-after": "5" } });
  }

  async #release(): Promise<boolean> {
    const { idempotencyKey: key } = this.#order;
    return key === undefined || this.#ports.claims.release(key, this.#draft.record, this.#resumed);
  }

  /** A claim that was left pending has its place in its own hour; the headers speak of the hour it is now. */
  #headers(used: number): Record<string, string> {
    return limitHeaders({ limit: this.#place.limit, used }, this.#hourNow());
  }

  #look(): Promise<number> {
    const { projectId, limit } = this.#place;
    return this.#ports.limit.look({ projectId, limit, hour: this.#hourNow() });
  }

  #isCurrent(): boolean {
    return this.#place.hour.startMicros === this.#hourNow().startMicros;
  }

  #hourNow(): Hour {
    return hourOf(this.#order.nowMs * 1000);
  }
}

function receipt(refreshId: string, headers: Record<string, string>): Answer {
  return { status: 202, body: { refresh_id: refreshId }, headers };
}
