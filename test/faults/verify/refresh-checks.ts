import { countedOf, type Evidence, type RefreshEvidence } from "./evidence.ts";
import { type Check, type Verdict, verdictOn } from "./finding.ts";

/** Of refreshes that were told to be complete: the others are wrong already, once, in I5. */
function onCompleted(what: string, wrongWith: (refresh: RefreshEvidence) => readonly string[]): (evidence: Evidence) => Verdict {
  return ({ refreshes, unfinished }) => {
    const completed = refreshes.filter(({ refreshId }) => !unfinished.includes(refreshId));
    return verdictOn(what, completed, (refresh) => wrongWith(refresh).map((sentence) => `${refresh.refreshId}: ${sentence}`));
  };
}

function oneOutcome({ tokenIds, progressRow, errorRows }: RefreshEvidence): string[] {
  const done = ordinalsIn(progressRow?.done);
  const failed = ordinalsIn(progressRow?.failed);
  const rowsOf = Map.groupBy(errorRows, (row) => Number(row.ordinal));
  return [
    ...tokenIds.flatMap((tokenId, ordinal) => {
      const rowCount = rowsOf.get(ordinal)?.length ?? 0;
      if (!done.has(ordinal)) return `token ${tokenId} has no outcome`;
      return rowCount === (failed.has(ordinal) ? 1 : 0)
        ? []
        : `token ${tokenId} is ${failed.has(ordinal) ? "failed" : "succeeded"} with ${rowCount} error rows`;
    }),
    ...(done.size === tokenIds.length ? [] : [`${done.size} ordinals of ${tokenIds.length} are done`]),
  ];
}

function countsAsRows({ progressRow, errorRows, view }: RefreshEvidence): string[] {
  const [done, failed] = [ordinalsIn(progressRow?.done).size, ordinalsIn(progressRow?.failed).size];
  const byCode = Object.values((progressRow?.failed_by_code ?? {}) as Record<string, number>).reduce((sum, one) => sum + one, 0);
  const wanted = { succeeded: done - failed, failed, pending: 0 };
  const stored = { succeeded: Number(progressRow?.succeeded_count), failed: Number(progressRow?.failed_count), pending: 0 };
  const told = view?.summary;
  const same = (counts: object | undefined) => JSON.stringify(counts) === JSON.stringify(wanted);
  return [
    ...(same(stored) ? [] : [`counts ${JSON.stringify(stored)} and a recount of ${JSON.stringify(wanted)}`]),
    ...(same(told) ? [] : [`its owner is told ${JSON.stringify(told)} of ${JSON.stringify(wanted)}`]),
    ...(errorRows.length === failed && byCode === failed
      ? []
      : [`${errorRows.length} error rows and ${byCode} by code for ${failed} failed`]),
  ];
}

function completedOnce({ completions, outcomes, progressRow, tokenIds }: RefreshEvidence): string[] {
  const different = (read: (record: (typeof completions)[number]) => unknown) => new Set(completions.map(read)).size;
  const [first] = completions;
  if (first === undefined) return ["no completion was published"];
  const counted = countedOf({ outcomes });
  const lastMs = Math.max(...counted.map(({ timestampMs }) => timestampMs));
  const told = [first.value.succeeded, first.value.failed, first.value.total];
  const stored = [Number(progressRow?.succeeded_count), Number(progressRow?.failed_count), tokenIds.length];
  return [
    ...(different(({ bytes }) => bytes.toString("hex")) === 1 ? [] : ["its completions have different bytes"]),
    ...(different(({ headers }) => headers.ce_id) === 1 ? [] : ["its completions have different ids"]),
    ...(first.timestampMs >= lastMs && counted.length === tokenIds.length ? [] : ["completed before its last outcome"]),
    ...(told.join() === stored.join() ? [] : [`the completion says ${told}, the row ${stored}`]),
  ];
}

function errorsAreFailures({ errors, progressRow, tokenIds }: RefreshEvidence): string[] {
  const failed = [...ordinalsIn(progressRow?.failed)].map((ordinal) => tokenIds[ordinal] ?? "").sort();
  const shown = errors.map(({ token_id }) => token_id).sort();
  return failed.join() === shown.join() ? [] : [`shows ${shown.length} errors for ${failed.length} failed tokens`];
}

function requestedBefore({ completions }: RefreshEvidence): string[] {
  const wrong = completions.filter(({ value }) => value.completed_at < value.requested_at);
  return wrong.length === 0 ? [] : ["completed before it was requested"];
}

function told({ progressReads }: Evidence, invariant: "I2" | "I3"): Verdict {
  const wrong = progressReads.wrong.filter((one) => one.invariant === invariant).map(({ what }) => what);
  return { expected: `${progressReads.count} reads`, found: wrong.length === 0 ? "all" : `${wrong.length} wrong`, wrong };
}

function acceptedCompletes({ refreshes, unfinished, unclaimed }: Evidence): Verdict {
  const wrong = [
    ...unfinished.map((refreshId) => `${refreshId} was accepted and did not complete`),
    ...unclaimed.map(({ refreshId, tokenIds }) => `${refreshId} has ${tokenIds.length} tokens at work, and nobody asked for it`),
  ];
  const found = `${refreshes.length - unfinished.length} completed, ${unclaimed.length} that nobody asked for`;
  return { expected: `${refreshes.length} completed, and nothing else`, found, wrong };
}

function limitKept({ account, refreshes }: Evidence): Verdict {
  const hours = Map.groupBy(refreshes, ({ project, refreshId }) => `${project.projectId} in hour ${hourOf(refreshId)}`);
  const limited = account.requests.filter(({ project }) => project.refreshesPerHour < 1_000);
  if (limited.length === 0) return undefined;
  const over = [...hours].flatMap(([hour, list]) => {
    const limit = (list[0]?.project.refreshesPerHour ?? 0) + account.overGrants;
    return list.length > limit ? `project ${hour}: ${list.length} refreshes of ${limit}` : [];
  });
  const granted = limited.filter(({ answer }) => answer.kind === "accepted").length;
  const [{ project }] = limited as [(typeof limited)[number]];
  return {
    expected: `at most ${project.refreshesPerHour + account.overGrants} an hour of ${limited.length} posts`,
    found: `${granted}`,
    wrong: over,
  };
}

function listsWhole({ listed, refreshes, unclaimed }: Evidence): Verdict {
  const unknown = new Set(unclaimed.map(({ refreshId }) => refreshId));
  return verdictOn("lists, whole and without repetition", [...listed], ([project, ids]) => {
    const own = refreshes.filter((refresh) => refresh.project === project).map(({ refreshId }) => refreshId);
    const shown = ids.filter((id) => !unknown.has(id));
    const missing = own.filter((id) => !shown.includes(id)).map((id) => `project ${project.projectId} is not shown ${id}`);
    const twice = ids.length === new Set(ids).size ? [] : [`project ${project.projectId} is shown a refresh twice`];
    return [...missing, ...twice];
  });
}

export const refreshChecks: readonly Check[] = [
  { invariant: "I1", promise: "each token ends once", look: onCompleted("refreshes, each token ended once", oneOutcome) },
  { invariant: "I2", promise: "the sum is always the request, pending never grows", look: (evidence) => told(evidence, "I2") },
  { invariant: "I3", promise: "completed when and only when nothing is pending", look: (evidence) => told(evidence, "I3") },
  { invariant: "I4", promise: "counts equal a recount", look: onCompleted("refreshes counted right", countsAsRows) },
  { invariant: "I5", promise: "what was accepted completes, what was refused leaves nothing", look: acceptedCompletes },
  {
    invariant: "I6",
    promise: "one completion, of one id and the same bytes",
    look: onCompleted("refreshes completed once", completedOnce),
  },
  { invariant: "I10", promise: "the errors are the failed tokens", look: onCompleted("lists of errors", errorsAreFailures) },
  { invariant: "I11", promise: "the hourly limit holds", look: limitKept },
  { invariant: "I15", promise: "requested before completed", look: onCompleted("refreshes", requestedBefore) },
  { invariant: "I16", promise: "pages neither skip nor repeat", look: listsWhole },
];

export function ordinalsIn(bitmap: unknown): Set<number> {
  if (!(bitmap instanceof Uint8Array)) return new Set();
  const bits = [0, 1, 2, 3, 4, 5, 6, 7];
  return new Set([...bitmap].flatMap((byte, at) => bits.filter((bit) => (byte >> bit) & 1).map((bit) => at * 8 + bit)));
}

/** A refresh id is a UUID of version 7: its first 48 bits are milliseconds since the epoch. */
function hourOf(refreshId: string): number {
  return Math.floor(Number.parseInt(refreshId.replaceAll("-", "").slice(0, 12), 16) / 3_600_000);
}
