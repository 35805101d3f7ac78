import { microsText, timeText } from "../text.ts";
import type { OpenLetters, PendingCheck, StageLag } from "./facts.ts";

export interface WaitFacts {
  /** Tokens without an outcome. */
  readonly pendingCount: number;
  /** None of its tokens has been counted yet. */
  readonly untouched: boolean;
  readonly lags: readonly StageLag[];
  readonly check: PendingCheck | undefined;
  readonly letters: OpenLetters;
}

/** What a refresh waits for, in the order of its way, as sentences. */
export function waitsFor(facts: WaitFacts): string[] {
  if (facts.pendingCount === 0) return ["Nothing: every token has its outcome."];
  const stages = facts.lags.filter(({ lag, stage }) => lag > 0 && (stage !== "splitter" || facts.untouched)).map(stageSentence);
  return [
    ...facts.letters.map(letterSentence),
    ...stages,
    ...(stages.length === 0 ? [lostSentence(facts)] : []),
    ...checkSentence(facts),
  ];
}

/** Of a refresh without rows: refused, expired, or accepted while Cassandra was away and not split yet. */
export function waitsWithoutRows({ lags, letters }: Pick<WaitFacts, "lags" | "letters">): string[] {
  const known = [...letters.map(letterSentence), ...lags.filter(({ lag }) => lag > 0).map(stageSentence)];
  return known.length > 0 ? known : ["Nothing is known of it: it was never accepted, or it has expired."];
}

function letterSentence({ id, topic, ofRefresh }: OpenLetters[number]): string {
  const what = ofRefresh ? "is a record of this refresh" : "is of its project or collection, and may be of this refresh";
  return `An operator: dead letter ${id} from ${topic} ${what}. See dead-letters show ${id}.`;
}

function stageSentence({ stage, partition, lag, delayMs }: StageLag): string {
  const records = `${lag} ${lag === 1 ? "record" : "records"} of partition ${partition}`;
  if (stage === "splitter") return `The splitter, which has not finished ${records}: the refresh may not be split yet.`;
  if (stage === "fetcher")
    return `The fetcher, which has not finished ${records}: calls of its project that are queued or under way.`;
  if (stage === "delay tier") return `A delay of ${secondsText(delayMs ?? 0)}: ${records} wait for it, or are called after it.`;
  return `The aggregator, which has not counted ${records}.`;
}

function secondsText(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`;
}

function lostSentence({ pendingCount }: WaitFacts): string {
  const tokens = pendingCount === 1 ? "1 token is" : `${pendingCount} tokens are`;
  return `The watchdog: nothing of it is on its way, so ${tokens} lost, or nobody has been asked yet.`;
}

function checkSentence({ check }: WaitFacts): string[] {
  if (check === undefined) {
    return ["No check of the watchdog is found: if this lasts, its refresh.requested was never split; look at the dead letters."];
  }
  const { check: number, emission, refresh } = check.watchdog;
  return [
    `Check ${number} of the watchdog is due at ${timeText(check.dueMs)}; its tokens were handed out ${emission === 1 ? "once" : `${emission} times`} so far.`,
    `At the latest its deadline, ${microsText(refresh.deadline)}: an hour later the watchdog closes what is left.`,
  ];
}
