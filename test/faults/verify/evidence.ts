import { concurrently } from "../../../services/common/cassandra/parallel.ts";
import type { Row } from "../../../services/common/cassandra/session.ts";
import type {
  RefreshCompleted,
  RefreshRequested,
  TokenOutcome,
  TokenRefresh,
  TokenState,
} from "../../../services/common/messages/records.ts";
import { bucketOf } from "../../../services/common/messages/token-id.ts";
import type { RefreshErrorView, RefreshView } from "../../support/clients.ts";
import type { CallRecord } from "../../support/metadata-api/call-log.ts";
import type { ReadRecord } from "../../support/topic-reader.ts";
import type { AcceptedRefresh, Account, FaultProject } from "../account.ts";
import type { SeenCommit } from "../watch.ts";
import type { World } from "../world.ts";
import { listRefreshes } from "./listing.ts";

/** Everything that is known of one accepted refresh, from every side. */
export interface RefreshEvidence extends AcceptedRefresh {
  /** What its owner is told at the end; undefined when that could not be asked. */
  readonly view: RefreshView | undefined;
  /** In small pages. */
  readonly errors: readonly RefreshErrorView[];
  readonly progressRow: Row | undefined;
  readonly errorRows: readonly Row[];
  /** By offset. */
  readonly outcomes: readonly ReadRecord<TokenOutcome>[];
  readonly completions: readonly ReadRecord<RefreshCompleted>[];
  /** The records that began it: more than one after a publish that was repeated. */
  readonly requested: readonly ReadRecord<RefreshRequested>[];
  /** Records on their way, of every tier. */
  readonly underWay: readonly ReadRecord<TokenRefresh>[];
}

/** Everything that is known of one token that was asked for. */
export interface TokenEvidence {
  readonly project: FaultProject;
  readonly tokenId: string;
  readonly isRegistered: boolean;
  /** How many refreshes asked for it. */
  readonly refreshCount: number;
  readonly row: Row | undefined;
  readonly calls: readonly CallRecord[];
  /** The first outcome of each refresh, by offset: those that counted. */
  readonly counted: readonly ReadRecord<TokenOutcome>[];
  readonly states: readonly ReadRecord<TokenState>[];
}

export interface Evidence {
  readonly account: Account;
  readonly refreshes: readonly RefreshEvidence[];
  readonly tokens: readonly TokenEvidence[];
  /** Refreshes that exist by any sign, and that no owner asked for, or was told did not come about. */
  readonly unclaimed: readonly UnclaimedRefresh[];
  /** Accepted, and not completed in time. */
  readonly unfinished: readonly string[];
  /** Of each project, every refresh that its owner is shown, newest first. */
  readonly listed: ReadonlyMap<FaultProject, readonly string[]>;
  readonly deadLetters: readonly ReadRecord<Buffer>[];
  readonly commits: ReadonlyMap<string, readonly SeenCommit[]>;
  readonly progressReads: {
    readonly count: number;
    readonly wrong: readonly { readonly invariant: "I2" | "I3"; readonly what: string }[];
  };
  readonly log: { readonly lineCount: number; readonly leaks: readonly string[] };
  /** Services that ended although nobody ended them. */
  readonly unaskedEnds: readonly string[];
  /** Of calls that were made from here. */
  readonly slowestProbeMs: number;
  readonly generation: number;
  readonly shortestDelayMs: number;
}

export interface UnclaimedRefresh {
  readonly refreshId: string;
  readonly tokenIds: readonly string[];
}

const readsAtOnce = 16;

/** Looks at everything once more when all is over: topics, tables, the API's log, and what owners are told. */
export async function gather(
  world: World,
  options: { unfinished: readonly string[]; shortestDelayMs: number },
): Promise<Evidence> {
  const { stage, account, progress } = world;
  world.tell("reading topics, tables and logs");
  await stage.caughtUp();
  for (const { book } of world.apis) await book.caughtUp();
  const records = recordsByRefresh(world);
  const refreshes = await concurrently(readsAtOnce, account.accepted, (refresh) => refreshEvidence(world, refresh, records));
  for (const refresh of refreshes) if (refresh.view !== undefined) progress.note(refresh, refresh.view);
  const listed = new Map<FaultProject, readonly string[]>();
  for (const project of world.projects) listed.set(project, await listRefreshes(project, world.draw(1, 7)).catch(() => []));
  return {
    account,
    refreshes,
    tokens: await tokenEvidence(world, refreshes),
    unclaimed: unclaimedIn(world, listed),
    unfinished: options.unfinished,
    listed,
    deadLetters: stage.deadLetters.records,
    commits: world.commits.commits,
    progressReads: { count: progress.readCount, wrong: progress.wrong },
    log: stage.fleet.logs.drain(),
    unaskedEnds: stage.fleet.takeUnaskedEnds(),
    slowestProbeMs: world.probe.slowestMs,
    generation: stage.topics.tokenOutcome.generation,
    shortestDelayMs: options.shortestDelayMs,
  };
}

type RecordsByRefresh = ReturnType<typeof recordsByRefresh>;

function recordsByRefresh({ stage: { ledger, requested, underWay } }: World) {
  return {
    outcomes: Map.groupBy(ledger.outcomes.records, ({ value }) => value.refresh_id),
    completions: Map.groupBy(ledger.completions.records, ({ key }) => key),
    requested: Map.groupBy(requested.records, ({ key }) => key),
    underWay: Map.groupBy(underWay.records, ({ value }) => value.refresh_id),
  };
}

async function refreshEvidence(world: World, refresh: AcceptedRefresh, records: RecordsByRefresh): Promise<RefreshEvidence> {
  const { refreshId, project } = refresh;
  const { cassandra } = world.stage.ledger;
  const [progressRow] = await cassandra.read("SELECT * FROM refresh_progress WHERE refresh_id = ?", [refreshId]);
  return {
    ...refresh,
    view: await project.owner.getRefresh(refreshId).catch(() => undefined),
    errors: await project.owner.listErrors(refreshId, world.draw(1, 40)).catch(() => []),
    progressRow,
    errorRows: await cassandra.read("SELECT * FROM refresh_errors WHERE refresh_id = ?", [refreshId]),
    outcomes: (records.outcomes.get(refreshId) ?? []).sort((one, other) => one.offset - other.offset),
    completions: records.completions.get(refreshId) ?? [],
    requested: records.requested.get(refreshId) ?? [],
    underWay: records.underWay.get(refreshId) ?? [],
  };
}

async function tokenEvidence(world: World, refreshes: readonly RefreshEvidence[]): Promise<TokenEvidence[]> {
  const { ledger } = world.stage;
  const states = Map.groupBy(ledger.states.records, ({ key }) => key);
  const counted = Map.groupBy(refreshes.flatMap(countedOf), ({ value }) => `${value.collection_address}:${value.token_id}`);
  const asked = Map.groupBy(
    refreshes.flatMap(({ project, tokenIds }) => tokenIds.map((tokenId) => ({ project, tokenId }))),
    ({ project, tokenId }) => `${project.collection}:${tokenId}`,
  );
  const rows = await tokenRows(
    world,
    [...asked.values()].flatMap(([first]) => first ?? []),
  );
  return [...asked].flatMap(([key, [first, ...more]]) => {
    if (first === undefined) return [];
    const { project, tokenId } = first;
    return {
      project,
      tokenId,
      isRegistered: project.registered?.has(tokenId) ?? true,
      refreshCount: 1 + more.length,
      row: rows.get(key),
      calls: project.api.book.of(tokenId),
      counted: (counted.get(key) ?? []).sort((one, other) => one.offset - other.offset),
      states: (states.get(key) ?? []).sort((one, other) => one.offset - other.offset),
    };
  });
}

/** README, Exactness: the first outcome of an ordinal wins. */
export function countedOf({ outcomes }: Pick<RefreshEvidence, "outcomes">): ReadRecord<TokenOutcome>[] {
  const first = new Map<number, ReadRecord<TokenOutcome>>();
  for (const outcome of outcomes) if (!first.has(outcome.value.ordinal)) first.set(outcome.value.ordinal, outcome);
  return [...first.values()];
}

async function tokenRows(
  world: World,
  tokens: readonly { readonly project: FaultProject; readonly tokenId: string }[],
): Promise<Map<string, Row>> {
  const query = "SELECT * FROM tokens WHERE collection_address = ? AND bucket = ?";
  const buckets = new Map<string, [string, string]>();
  for (const { project, tokenId } of tokens) {
    const bucket = bucketOf(tokenId);
    buckets.set(`${project.collection}:${bucket}`, [project.collection, bucket]);
  }
  const rows = await concurrently(readsAtOnce, [...buckets.values()], ([collection, bucket]) =>
    world.stage.ledger.cassandra.read(query, [collection, bucket]),
  );
  return new Map(rows.flat().map((row) => [`${row.collection_address}:${row.token_id}`, row]));
}

/** By any sign: its record, an outcome, a completion, or the list that the owner is shown. */
function unclaimedIn(world: World, listed: ReadonlyMap<FaultProject, readonly string[]>): UnclaimedRefresh[] {
  const { ledger, requested, underWay } = world.stage;
  const claimed = new Set(world.account.accepted.map(({ refreshId }) => refreshId));
  const ours = new Set(world.projects.map(({ collection }) => collection));
  const tokens = new Map<string, Set<string>>();
  const note = (refreshId: string, tokenId?: string): void => {
    if (claimed.has(refreshId)) return;
    const known = tokens.get(refreshId) ?? new Set<string>();
    tokens.set(refreshId, known);
    if (tokenId !== undefined) known.add(tokenId);
  };
  for (const { value } of [...ledger.outcomes.records, ...underWay.records]) {
    if (ours.has(value.collection_address)) note(value.refresh_id, value.token_id);
  }
  for (const { value } of requested.records) {
    if (ours.has(value.collection_address)) for (const tokenId of value.token_ids) note(value.refresh_id, tokenId);
  }
  for (const { value } of ledger.completions.records) if (ours.has(value.collection_address)) note(value.refresh_id);
  for (const refreshId of [...listed.values()].flat()) note(refreshId);
  return [...tokens].map(([refreshId, ids]) => ({ refreshId, tokenIds: [...ids] }));
}
