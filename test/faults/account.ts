import type { RefreshRequested } from "../../services/common/messages/records.ts";
import type { OwnerClient } from "../support/clients.ts";
import type { Wallet } from "../support/wallet.ts";
import type { FaultApi } from "./fault-api.ts";

/** A project of one collection, whose owner asks for refreshes. */
export interface FaultProject {
  readonly projectId: number;
  readonly collection: string;
  readonly wallet: Wallet;
  readonly owner: OwnerClient;
  readonly api: FaultApi;
  /** undefined: every token exists. */
  readonly registered: ReadonlySet<string> | undefined;
  readonly refreshesPerHour: number;
}

/**
 * What an owner was told, in the end.
 * - accepted: 202, for the first time or at a repetition under the same Idempotency-Key.
 * - refused: an answer that says that nothing was requested.
 * - unknown: no answer, or one that says so: the refresh may exist.
 */
export type Answer =
  | { readonly kind: "accepted"; readonly refreshId: string }
  | { readonly kind: "refused"; readonly status: number; readonly code: string }
  | { readonly kind: "unknown" };

/** A refresh that was asked for. */
export interface RefreshRequest {
  readonly project: FaultProject;
  readonly tokenIds: readonly string[];
  readonly idempotencyKey: string | undefined;
  readonly answer: Answer;
}

/** An accepted refresh, or one of an unknown answer that was found to exist. */
export interface AcceptedRefresh extends RefreshRequest {
  readonly refreshId: string;
}

/** The verifier's own account of a scenario: what was asked for, what was answered, and what was done to the services. */
export class Account {
  readonly requests: RefreshRequest[] = [];
  readonly faults: string[] = [];
  /** How many times the calls of one token may come again, without a 429 or 503: README, Guarantees, I7 and I8. */
  repeats = 0;
  /** Refreshes of an hour above the limit of a project that the README allows for what was done. */
  overGrants = 0;
  /** Dead letters that were provoked. */
  deadLetters = 0;
  /** One sentence each, for the report. */
  readonly measures: string[] = [];

  get accepted(): AcceptedRefresh[] {
    return this.requests.flatMap((request) =>
      request.answer.kind === "accepted" ? [{ ...request, refreshId: request.answer.refreshId }] : [],
    );
  }

  /**
   * What was published without its owner getting an answer exists, and has to complete like every other: from here on it counts as
   * accepted. One record for each such request: a second one has nobody who asked for it.
   */
  adopt(published: readonly RefreshRequested[]): void {
    if (this.unknown.length === 0) return;
    const claimed = new Set(this.accepted.map(({ refreshId }) => refreshId));
    for (const { refresh_id: refreshId, project_id: projectId, token_ids: tokenIds } of published) {
      if (claimed.has(refreshId)) continue;
      const index = this.requests.findIndex(
        ({ answer, project, tokenIds: asked }) =>
          answer.kind === "unknown" && project.projectId === projectId && asked.join() === tokenIds.join(),
      );
      const request = this.requests[index];
      if (request !== undefined) this.requests[index] = { ...request, answer: { kind: "accepted", refreshId } };
      claimed.add(refreshId);
    }
  }

  get unknown(): RefreshRequest[] {
    return this.requests.filter(({ answer }) => answer.kind === "unknown");
  }
}
