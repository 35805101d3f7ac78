import { isDeepStrictEqual } from "node:util";
import type { DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { RefreshRequested, TokenOutcome } from "../../../services/common/messages/records.ts";
import { processOnce, type Reference } from "../../unit/aggregator/reference.ts";
import { ordinalsIn } from "./bits.ts";
import type { Book } from "./book.ts";
import type { Indexed } from "./log-index.ts";

/** I1, I3 to I6, I9, I10, I15: tables and public topics against what follows from the log of outcomes, read simply, once. */
export function checkResults(book: Book): string[] {
  const references = referencesOf(book);
  const problems = book.plan.refreshes.flatMap(({ record }) => {
    const reference = references.find(({ summaries }) => summaries.has(record.refresh_id));
    if (reference === undefined) return [`I5: ${record.refresh_id} was accepted, and none of its tokens has an outcome`];
    return [...checkRefresh(book, record, reference), ...checkErrors(book, record, reference)];
  });
  const tokens = references.flatMap((reference) => checkTokens(book, reference));
  return [...problems, ...tokens, ...checkOutcomes(book), ...checkStates(book), ...conflicts(book)];
}

/** One reference for each partition: a collection is in one. */
function referencesOf({ index, topics }: Book): Reference[] {
  const byPartition = Map.groupBy(index.outcomes, ({ partition }) => partition);
  return [...byPartition.values()].map((outcomes) => processOnce(outcomes.map(decodedOf), topics.tokenOutcome.generation));
}

function decodedOf({
  topic,
  partition,
  offset,
  key,
  timestampMs,
  value,
  content,
}: Indexed<TokenOutcome>): DecodedRecord<TokenOutcome> {
  return { topic, partition, offset, key: key?.toString() ?? "", timestampMs, bytes: value.length, value: content };
}

function checkRefresh({ tables, index }: Book, { refresh_id: id, token_ids }: RefreshRequested, reference: Reference): string[] {
  const summary = reference.summaries.get(id);
  const pending = token_ids.length - (summary?.done.size ?? 0);
  if (summary === undefined || pending > 0) return [`I5: ${id} has ${pending} tokens without an outcome`];
  const row = tables.row("refresh_progress", id);
  const told = [row?.succeeded_count, row?.unchanged_count, row?.failed_count, ordinalsIn(row?.done).length];
  const right = [summary.succeeded, summary.unchanged, summary.failed, token_ids.length];
  if (!isDeepStrictEqual(told, right)) return [`I4: ${id} has succeeded, unchanged, failed, done ${told}, and not ${right}`];
  const completions = index.completions.filter(({ content }) => content.refresh_id === id);
  const [first] = completions;
  if (first === undefined) return [`I6: nobody was told that ${id} is complete`];
  if (completions.some((other) => !same(first, other))) return [`I6: two different completions of ${id}`];
  const completion = reference.completions.get(id);
  if (!isDeepStrictEqual({ ...first.content, failed_by_code: { ...first.content.failed_by_code } }, completion)) {
    return [`I6: the completion of ${id} says ${JSON.stringify(first.content)}, and not ${JSON.stringify(completion)}`];
  }
  if (row?.completed_at !== completion?.completed_at) return [`I6: ${id} is completed at two times`];
  return first.content.completed_at >= first.content.requested_at ? [] : [`I15: ${id} was completed before it was requested`];
}

function same(one: Indexed<unknown>, other: Indexed<unknown>): boolean {
  return one.value.equals(other.value) && isDeepStrictEqual(one.headers, other.headers);
}

function checkErrors({ tables }: Book, { refresh_id: id }: RefreshRequested, { errors }: Reference): string[] {
  const told = tables
    .all("refresh_errors")
    .filter(({ refresh_id }) => refresh_id === id)
    .map(({ ordinal, token_id, error_code, created_at }) => `${ordinal} ${token_id} ${error_code} ${created_at}`);
  const right = errors
    .filter(({ refresh_id }) => refresh_id === id)
    .map(({ ordinal, token_id, error_code, created_at }) => `${ordinal} ${token_id} ${error_code} ${created_at}`);
  return isDeepStrictEqual(told.sort(), right.sort())
    ? []
    : [`I10: ${id} lists the errors ${told.join("; ")}, and not ${right.join("; ")}`];
}

/** Table and topic have of each token what the last outcome that counted brought. */
function checkTokens({ tables, index, topics }: Book, reference: Reference): string[] {
  const rows = new Map(tables.all("tokens").map((row) => [`${row.collection_address}:${row.token_id}`, row]));
  return [...reference.tokens].flatMap(([key, token]) => {
    const row = rows.get(key);
    const stored = {
      metadata: row?.metadata,
      version: row?.version,
      refreshed_at: row?.refreshed_at,
      refresh_id: row?.refresh_id,
    };
    if (!isDeepStrictEqual(stored, token))
      return [`I9: ${key} is stored as ${JSON.stringify(stored)}, and not ${JSON.stringify(token)}`];
    const published = index.states.filter(({ key: stateKey }) => stateKey?.toString() === key);
    const newest = published.reduce((best, state) => Math.max(best, state.content.version), 0);
    if (newest !== token.version) return [`I9: ${key} is published up to version ${newest}, and stored at ${token.version}`];
    const told = index.completions.find(({ content }) => content.refresh_id === token.refresh_id);
    const state = published.find(({ content }) => content.version === newest);
    const isOwn = state?.content.refresh_id === token.refresh_id;
    const late = isOwn && told !== undefined && state !== undefined && state.sequence > told.sequence;
    return late ? [`${topics.tokenState.baseName} got ${key} after the completion of its refresh`] : [];
  });
}

/** A version belongs to its content, and comes from an outcome. */
function checkStates({ index, topics }: Book): string[] {
  const { generation } = topics.tokenOutcome;
  const byVersion = new Map(
    index.outcomes.map(({ partition, offset, content }) => [
      `${content.collection_address}:${content.token_id}@${generation * 2 ** 40 + offset}`,
      { partition, content },
    ]),
  );
  return index.states.flatMap(({ content }) => {
    const name = `${content.collection_address}:${content.token_id}@${content.version}`;
    const outcome = byVersion.get(name)?.content;
    if (outcome === undefined) return [`I9: ${name} was published, and is no outcome`];
    const right = outcome.metadata === content.metadata && outcome.created_at === content.refreshed_at;
    return right ? [] : [`I9: ${name} was published as ${content.metadata}, and is ${outcome.metadata}`];
  });
}

/** I9: the text of an outcome is what the API sent; a token fails for what its calls gave. */
function checkOutcomes({ index, calls, plan }: Book): string[] {
  const byPath = Map.groupBy(calls, ({ path }) => path);
  return index.outcomes.flatMap(({ content }) => {
    const { refresh_id, token_id, ordinal, metadata, error_detail, status_code } = content;
    const refreshIndex = plan.refreshes.findIndex(({ record }) => record.refresh_id === refresh_id);
    const refresh = plan.refreshes[refreshIndex]?.record;
    const name = `${refresh_id} ${ordinal} (token ${token_id})`;
    if (refresh?.token_ids[ordinal] !== token_id) return [`I1: an outcome of ${name}, which nobody asked for`];
    const answers = byPath.get(`/r${refreshIndex + 1}/${token_id}`) ?? [];
    if (metadata !== null) {
      return answers.some(({ text }) => text === metadata) ? [] : [`I9: ${name} was never sent as ${metadata}`];
    }
    if (error_detail === "not_registered") {
      const project = plan.projects.find(({ projectId }) => projectId === refresh.project_id);
      const isKnown = refresh.token_policy === "open" || project?.registered.includes(token_id);
      return isKnown ? [`I1: ${name} was not found, and is registered`] : [];
    }
    if (error_detail === "deadline_exceeded") return plan.damagedShare > 0 ? [] : [`I5: ${name} ran out of time`];
    const status = status_code ?? "hang";
    return answers.some((answer) => answer.status === status) ? [] : [`I1: ${name} failed with ${status}, which it never got`];
  });
}

function conflicts({ tables }: Book): string[] {
  return tables.conflicts.map((conflict) => `a replay wrote other bytes: ${conflict}`);
}
