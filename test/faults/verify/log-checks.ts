import type { SeenCommit } from "../watch.ts";
import { countedOf, type Evidence, type RefreshEvidence } from "./evidence.ts";
import { type Check, type Verdict, verdictOn } from "./finding.ts";

/** Append times are whole milliseconds. */
const clockToleranceMs = 2;

interface Place {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** A record that somebody has committed, what it is, and when its effects were in the log; undefined: never. */
interface Committed {
  readonly what: string;
  readonly place: Place;
  readonly finishedMs: number | undefined;
}

/** The first sight of a commit behind the record. */
function seenCommit(commits: Evidence["commits"], { topic, partition, offset }: Place): SeenCommit | undefined {
  return commits.get(`${topic}/${partition}`)?.find((commit) => commit.offset > offset);
}

function earliest(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : Math.min(...times);
}

/** A token on its way is finished by its outcome, or by its record in a tier. */
function tokensOnTheirWay({ refreshId, underWay, outcomes }: RefreshEvidence): Committed[] {
  const outcomesOf = Map.groupBy(outcomes, ({ value }) => value.ordinal);
  const recordsOf = Map.groupBy(underWay, ({ value }) => value.ordinal);
  return underWay.map((record) => {
    const { ordinal } = record.value;
    const later = (recordsOf.get(ordinal) ?? []).filter(
      (other) => other !== record && other.topic.includes(".retry-") && other.timestampMs >= record.timestampMs,
    );
    const times = [...(outcomesOf.get(ordinal) ?? []), ...later].map(({ timestampMs }) => timestampMs);
    return { what: `ordinal ${ordinal} of ${refreshId}`, place: record, finishedMs: earliest(times) };
  });
}

/** A refresh is split when the last of its tokens is on its way, or has an outcome. */
function refreshesSplit({ refreshId, requested, underWay, outcomes, tokenIds }: RefreshEvidence): Committed[] {
  const firstMs = new Map<number, number>();
  for (const { value, timestampMs } of [...underWay, ...outcomes]) {
    firstMs.set(value.ordinal, Math.min(firstMs.get(value.ordinal) ?? Number.POSITIVE_INFINITY, timestampMs));
  }
  const finishedMs = firstMs.size < tokenIds.length ? undefined : Math.max(...firstMs.values());
  return requested.map((place) => ({ what: `the request of ${refreshId}`, place, finishedMs }));
}

/** The outcome that completes a refresh is finished by the completion. */
function lastOutcomes({ refreshId, outcomes, completions, tokenIds }: RefreshEvidence): Committed[] {
  const counted = countedOf({ outcomes });
  const last = counted.reduce((one, other) => (other.offset > one.offset ? other : one), counted[0] ?? { offset: -1 });
  if (counted.length < tokenIds.length || !("topic" in last)) return [];
  const finishedMs = earliest(completions.map(({ timestampMs }) => timestampMs));
  return [{ what: `the last outcome of ${refreshId}`, place: last, finishedMs }];
}

function nothingCommittedUnfinished({ refreshes, commits }: Evidence): Verdict {
  const records = refreshes.flatMap((one) => [...tokensOnTheirWay(one), ...refreshesSplit(one), ...lastOutcomes(one)]);
  const committed = records.flatMap((record) => {
    const commit = seenCommit(commits, record.place);
    return commit === undefined ? [] : { ...record, commit };
  });
  return verdictOn("records finished before their commit", committed, ({ what, place, finishedMs, commit }) => {
    if (finishedMs !== undefined && finishedMs <= commit.seenAtMs + clockToleranceMs) return undefined;
    const when = finishedMs === undefined ? "never finished" : `finished ${finishedMs - commit.seenAtMs} ms later`;
    return `${what} (${place.topic}/${place.partition}, offset ${place.offset}) was committed and ${when}`;
  });
}

function lettersNamed({ deadLetters, account }: Evidence): Verdict {
  const nameless = deadLetters
    .filter(({ headers }) => !headers.dead_letter_cause)
    .map(({ offset }) => `letter ${offset} has no cause`);
  const surplus = deadLetters.length - account.deadLetters;
  const causes = deadLetters.map(
    ({ headers, key }) => `a dead letter nobody provoked: ${headers.dead_letter_cause} (key ${key})`,
  );
  const wrong = [...nameless, ...(surplus > 0 ? causes : []), ...(surplus < 0 ? [`${-surplus} dead letters are missing`] : [])];
  return { expected: `${account.deadLetters} dead letters`, found: `${deadLetters.length}`, wrong };
}

function nothingLeaked({ log }: Evidence): Verdict {
  return {
    expected: `no secret in ${log.lineCount} lines`,
    found: log.leaks.length === 0 ? "none" : `${log.leaks.length}`,
    wrong: log.leaks,
  };
}

function nobodyEnded({ unaskedEnds }: Evidence): Verdict {
  return {
    expected: "no process ends unasked",
    found: unaskedEnds.length === 0 ? "none" : `${unaskedEnds.length}`,
    wrong: unaskedEnds,
  };
}

export const logChecks: readonly Check[] = [
  { invariant: "I13", promise: "no commit past an unfinished record", look: nothingCommittedUnfinished },
  { invariant: "I14", promise: "dead letters name their cause", look: lettersNamed },
  { invariant: "I17", promise: "no secret in a log", look: nothingLeaked },
  { invariant: "alive", promise: "no process ends unasked", look: nobodyEnded },
];
