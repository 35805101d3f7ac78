import { PoisonRecordError } from "../../common/errors.ts";
import type { RefreshCompleted, TokenState } from "../../common/messages/records.ts";
import type { Outcome, Success } from "./outcome.ts";
import { completionOf, noProgress, type Progress, ProgressDraft } from "./progress.ts";
import { effectOn, noContent, type TokenHead, type TokenTouch } from "./token.ts";

/** A success that reached its token's row: with `content` everything is written, else only who read it last, and when. */
export interface TokenWrite {
  readonly outcome: Outcome;
  readonly content: { readonly metadata: string; readonly head: TokenHead } | null;
}

/** What a segment does to one refresh. */
export interface RefreshWrite {
  readonly refreshId: string;
  /** Micros: the rows expire some time after it. */
  readonly requestedAt: number;
  readonly progress: Progress;
  readonly failures: readonly Outcome[];
}

/** Why an outcome had no effect: its ordinal had one already, in a refresh under way or in one that has ended. */
export type IgnoredReason = "repeated" | "after_completion";

/** A stretch of a batch in which no token's row is touched twice; its effects happen before those of the next begin. */
export interface Segment {
  readonly states: readonly TokenState[];
  readonly tokens: readonly TokenWrite[];
  readonly refreshes: readonly RefreshWrite[];
  readonly completions: readonly RefreshCompleted[];
  /** Of the completions, those that happen for the first time. */
  readonly completed: readonly RefreshCompleted[];
  readonly succeededCount: number;
  readonly ignored: Readonly<Record<IgnoredReason, number>>;
}

/** What is stored of the tokens and refreshes of a batch; an absent entry is not stored. */
export interface Known {
  readonly heads: ReadonlyMap<string, TokenHead>;
  readonly progress: ReadonlyMap<string, Progress>;
}

export interface Plan {
  readonly segments: readonly Segment[];
  /** What will be stored when every segment is durable. */
  readonly after: Known;
  /** Successes that counted while a newer content of their token was stored. */
  readonly overtaken: readonly Outcome[];
  /** What cannot be if the stored versions come from this log. */
  readonly contradictions: readonly string[];
}

/**
 * Decides what the outcomes of one partition, in order, do to what is stored. Pure: a replay decides the same. Throws
 * PoisonRecordError for an outcome that contradicts its refresh, before anything has had an effect.
 */
export function planBatch(outcomes: readonly Outcome[], known: Known): Plan {
  const planner = new Planner(known);
  for (const outcome of outcomes) planner.take(outcome);
  return planner.finish();
}

class Planner {
  readonly #known: Known;
  readonly #heads: Map<string, TokenHead>;
  readonly #progress = new Map<string, ProgressDraft>();
  readonly #segments: Segment[] = [];
  readonly #overtaken: Outcome[] = [];
  readonly #contradictions: string[] = [];
  #current = new SegmentDraft();

  constructor(known: Known) {
    this.#known = known;
    this.#heads = new Map(known.heads);
  }

  take(outcome: Outcome): void {
    const progress = this.#progressOf(outcome);
    if (progress.isDone(outcome.record.ordinal)) this.#current.ignore(outcome, progress);
    else {
      if (outcome.version <= progress.version) this.#contradict(outcome, "its refresh has a newer outcome, but not this one");
      const unchanged = outcome.result.ok && this.#takeSuccess(outcome, outcome.result);
      progress.count(outcome, unchanged);
      this.#current.count(outcome, progress);
    }
  }

  finish(): Plan {
    this.#cut();
    const counted = Array.from(this.#progress, ([refreshId, draft]) => [refreshId, draft.value] as const);
    return {
      segments: this.#segments,
      after: { heads: this.#heads, progress: new Map([...this.#known.progress, ...counted]) },
      overtaken: this.#overtaken,
      contradictions: this.#contradictions,
    };
  }

  #progressOf({ record: { refresh_id: refreshId, total } }: Outcome): ProgressDraft {
    const known = this.#progress.get(refreshId);
    const draft = known ?? new ProgressDraft(this.#known.progress.get(refreshId) ?? noProgress(total));
    if (known === undefined) this.#progress.set(refreshId, draft);
    if (draft.total === total) return draft;
    throw new PoisonRecordError(`token.outcome: a total of ${total} in a refresh of ${draft.total} tokens`);
  }

  /** Whether the token's content stayed the same. */
  #takeSuccess(outcome: Outcome, success: Success): boolean {
    const effect = effectOn(this.#heads.get(outcome.tokenKey) ?? noContent, outcome.version, success);
    if (effect.kind === "overtaken") this.#overtaken.push(outcome);
    else if (effect.kind === "contradicted") this.#contradict(outcome, "its token has this version with another content");
    else {
      this.#touchToken(outcome, success, effect);
      return effect.unchanged;
    }
    return false;
  }

  /** Cuts the batch before a second outcome touches the row of one token: a replay reads off the row what the first did to it. */
  #touchToken(outcome: Outcome, success: Success, { kind, head }: TokenTouch): void {
    if (this.#current.touches(outcome.tokenKey)) this.#cut();
    this.#heads.set(outcome.tokenKey, head);
    const content = kind === "unchanged" ? null : { metadata: success.metadata, head };
    this.#current.touch({ outcome, content }, kind === "changed" ? stateOf(outcome, success) : undefined);
  }

  #contradict({ version, tokenKey, record }: Outcome, what: string): void {
    this.#contradictions.push(`version ${version} (token ${tokenKey}, refresh ${record.refresh_id}): ${what}`);
  }

  #cut(): void {
    this.#segments.push(this.#current.finish());
    this.#current = new SegmentDraft();
  }
}

interface RefreshDraft {
  readonly requestedAt: number;
  readonly progress: ProgressDraft;
  readonly failures: Outcome[];
}

class SegmentDraft {
  readonly #states: TokenState[] = [];
  readonly #tokens = new Map<string, TokenWrite>();
  readonly #refreshes = new Map<string, RefreshDraft>();
  readonly #completions = new Map<string, RefreshCompleted>();
  readonly #completed: RefreshCompleted[] = [];
  readonly #ignored = { repeated: 0, after_completion: 0 };
  #succeededCount = 0;

  touches(tokenKey: string): boolean {
    return this.#tokens.has(tokenKey);
  }

  touch(write: TokenWrite, state: TokenState | undefined): void {
    this.#tokens.set(write.outcome.tokenKey, write);
    if (state !== undefined) this.#states.push(state);
  }

  count(outcome: Outcome, progress: ProgressDraft): void {
    const { refresh_id: refreshId, requested_at: requestedAt } = outcome.record;
    const refresh = this.#refreshes.get(refreshId) ?? { requestedAt, progress, failures: [] };
    this.#refreshes.set(refreshId, refresh);
    if (outcome.result.ok) this.#succeededCount += 1;
    else refresh.failures.push(outcome);
    if (!progress.isCompleted()) return;
    const completion = completionOf(outcome, progress.value);
    this.#completions.set(refreshId, completion);
    this.#completed.push(completion);
  }

  /**
   * A record up to the one that completed its refresh is a replay, perhaps of a batch that ended between the progress row and the
   * completion: the completion is published again. One above it is a duplicate that nobody needs to hear of.
   */
  ignore(outcome: Outcome, progress: ProgressDraft): void {
    const isCompleted = progress.isCompleted();
    const late = isCompleted && outcome.version > progress.value.completedVersion;
    this.#ignored[late ? "after_completion" : "repeated"] += 1;
    if (isCompleted && !late) this.#completions.set(outcome.record.refresh_id, completionOf(outcome, progress.value));
  }

  finish(): Segment {
    return {
      states: this.#states,
      tokens: [...this.#tokens.values()],
      refreshes: Array.from(this.#refreshes, ([refreshId, { requestedAt, progress, failures }]) => ({
        refreshId,
        requestedAt,
        progress: progress.value,
        failures,
      })),
      completions: [...this.#completions.values()],
      completed: this.#completed,
      succeededCount: this.#succeededCount,
      ignored: this.#ignored,
    };
  }
}

function stateOf({ record, version }: Outcome, { metadata, contentHash }: Success): TokenState {
  return {
    collection_address: record.collection_address,
    token_id: record.token_id,
    version,
    content_hash: contentHash,
    metadata,
    refresh_id: record.refresh_id,
    refreshed_at: record.created_at,
  };
}
