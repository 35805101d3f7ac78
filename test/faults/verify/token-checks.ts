import { createHash } from "node:crypto";
import { versionOf } from "../../../services/aggregator/core/version.ts";
import type { TokenOutcome } from "../../../services/common/messages/records.ts";
import type { CallRecord } from "../../support/metadata-api/call-log.ts";
import type { ReadRecord } from "../../support/topic-reader.ts";
import type { Evidence, TokenEvidence } from "./evidence.ts";
import { type Check, type Verdict, verdictOn } from "./finding.ts";

const mostCalls = 3;
/** Append times are whole milliseconds, and the broker's clock and the simulator's are not read at the same instant. */
const clockToleranceMs = 5;
/** Nearly the three seconds that a call may take. */
const timedOutMs = 2_900;
/** The simulated API answers within a tenth of this: then it is the machine that had no time. */
const tooBusyMs = 1_000;

const nameOf = ({ project, tokenId }: TokenEvidence): string => `token ${tokenId} of project ${project.projectId}`;
const wasRefused = ({ end }: CallRecord): boolean => end === "429" || end === "503";

function onTokens(what: string, wrongWith: (token: TokenEvidence, evidence: Evidence) => readonly string[]): Check["look"] {
  return (evidence) =>
    verdictOn(what, evidence.tokens, (token) => wrongWith(token, evidence).map((sentence) => `${nameOf(token)} ${sentence}`));
}

/** Calls of a token: one for each of its records, and there is one behind each refusal. A fault may bring every record again. */
function callsBounded({ calls, refreshCount }: TokenEvidence, { account, shortestDelayMs }: Evidence): string[] {
  const deliveries = refreshCount * (1 + account.repeats);
  const refusals = calls.filter(wasRefused).length;
  const most = Math.min(mostCalls * deliveries, (refreshCount + refusals) * (1 + account.repeats));
  const ends = calls.map(({ end }) => end).join(", ");
  const tooMany = calls.length > most ? [`was called ${calls.length} times of ${most}: ${ends}`] : [];
  // Calls of two deliveries come in any order, and a delivery that comes again does not wait.
  return deliveries === 1 ? [...tooMany, ...tooEarly(calls, shortestDelayMs)] : tooMany;
}

/** The answer came after the arrival, the retry's record after the answer, and the call a tier's delay after its record. */
function tooEarly(calls: readonly CallRecord[], shortestDelayMs: number): string[] {
  return calls.slice(1).flatMap((call, index) => {
    const waitedMs = call.atMs - (calls[index]?.atMs ?? 0);
    return waitedMs < shortestDelayMs - clockToleranceMs ? `was called again after ${Math.round(waitedMs)} ms` : [];
  });
}

function silenceAfterCompletion(evidence: Evidence): Verdict {
  const completedMs = new Map<string, number>();
  for (const { project, tokenIds, completions } of evidence.refreshes) {
    const atMs = Math.max(...completions.map(({ timestampMs }) => timestampMs));
    for (const tokenId of tokenIds) {
      const key = `${project.collection}:${tokenId}`;
      completedMs.set(key, Math.max(completedMs.get(key) ?? 0, atMs));
    }
  }
  const settled = evidence.tokens.filter(({ project, tokenId }) => completedMs.has(`${project.collection}:${tokenId}`));
  let lateCount = 0;
  const verdict = verdictOn("tokens left alone after completion", settled, (token) => {
    const untilMs = (completedMs.get(`${token.project.collection}:${token.tokenId}`) ?? 0) + clockToleranceMs;
    const late = token.calls.filter(({ atMs }) => atMs > untilMs).length;
    lateCount += late;
    return late > mostCalls * token.refreshCount * evidence.account.repeats
      ? `${nameOf(token)}: ${late} calls after completion`
      : undefined;
  });
  return (
    verdict && { ...verdict, found: lateCount === 0 ? verdict.found : `${verdict.found}; ${lateCount} calls repeated by a fault` }
  );
}

interface Head {
  readonly text: string;
  readonly hash: string;
  readonly version: number;
}

/** README, Exactness: what the counted outcomes, one after the other, do to a token. */
function changesOf({ counted }: TokenEvidence, generation: number): Head[] {
  const changes: Head[] = [];
  for (const { value, offset } of counted) {
    if (value.metadata === null || value.content_hash === changes.at(-1)?.hash) continue;
    changes.push({ text: value.metadata, hash: value.content_hash ?? "", version: versionOf(generation, offset) });
  }
  return changes;
}

function lastCountedWins(token: TokenEvidence, { generation }: Evidence): string[] {
  const { row, states, calls, project, tokenId } = token;
  const changes = changesOf(token, generation);
  const last = changes.at(-1);
  if (last === undefined)
    return (row?.version ?? null) === null && states.length === 0 ? [] : ["has content, though no call for it succeeded"];
  const versions = new Map(changes.map((change) => [change.version, change]));
  const published = states.toSorted((one, other) => one.value.version - other.value.version).at(-1);
  const strange = states.filter(({ value }) => versions.get(value.version)?.text !== value.metadata);
  const missing = changes.filter(({ version }) => !states.some(({ value }) => value.version === version));
  const sent = changes.filter(({ text }) => !project.api.textsOf(tokenId).includes(text));
  const hash = createHash("sha256").update(last.text).digest("hex");
  return [
    ...(row?.metadata === last.text && row.content_hash === hash
      ? []
      : ["is not stored as the last outcome that counted has it"]),
    ...(Number(row?.version) === last.version ? [] : [`is stored with version ${row?.version} and not ${last.version}`]),
    ...(published?.value.metadata === last.text ? [] : ["is not published last as it is stored"]),
    ...strange.map(({ value }) => `is published with version ${value.version}, which is no change of it`),
    ...missing.map(({ version }) => `is not published with version ${version}`),
    ...sent.map(() => "has a text that its API never sent"),
    ...(calls.some(({ end }) => end === "200") ? [] : ["succeeded without an answer 200"]),
  ];
}

/** A failure that no answer of the token's own API accounts for is one that somebody else's trouble has caused. */
function failsByItsOwnApi(token: TokenEvidence, { slowestProbeMs }: Evidence): string[] {
  return token.counted.flatMap(({ value }) => {
    const { error_code: code, error_detail: detail } = value;
    const excused = detail === "timeout" && slowestProbeMs > tooBusyMs;
    if (code === null || excused || isAccountedFor(token, value)) return [];
    return `failed with ${code} (${detail}), which its API did not cause`;
  });
}

function isAccountedFor(
  { calls, isRegistered }: TokenEvidence,
  { error_code: code, status_code: status }: TokenOutcome,
): boolean {
  if (!isRegistered || code === "token_not_found") return !isRegistered && code === "token_not_found";
  if (code !== "unable_to_retrieve_metadata") return calls.some(({ end }) => end === "hostile" || end === String(status));
  const broken = ["reset", "hang", "hostile"];
  return calls.some(({ end = "", durationMs = 0 }) => broken.includes(end) || (end === "left" && durationMs >= timedOutMs));
}

/** A marketplace hears of every token before it hears that the refresh is complete. */
function statesBeforeCompletion({ refreshes, tokens }: Evidence): string[] {
  const states: readonly ReadRecord<{ readonly refresh_id: string }>[] = tokens.flatMap((token) => [...token.states]);
  const firsts = new Map<string, number>();
  for (const state of states) {
    const known = firsts.get(state.key) ?? Number.POSITIVE_INFINITY;
    firsts.set(state.key, Math.min(known, state.timestampMs));
  }
  return refreshes.flatMap(({ refreshId, completions, project, tokenIds }) => {
    const completedMs = Math.min(...completions.map(({ timestampMs }) => timestampMs));
    const late = tokenIds.filter((tokenId) => {
      const firstMs = firsts.get(`${project.collection}:${tokenId}`);
      return (
        firstMs !== undefined &&
        firstMs > completedMs &&
        states.some((state) => state.value.refresh_id === refreshId && state.key.endsWith(`:${tokenId}`))
      );
    });
    return late.length === 0 ? [] : `${refreshId} was published as complete before ${late.length} of its tokens were`;
  });
}

function contentRight(evidence: Evidence): Verdict {
  const verdict = onTokens("tokens stored and published as the API sent them", lastCountedWins)(evidence);
  const wrong = [...(verdict?.wrong ?? []), ...statesBeforeCompletion(evidence)];
  return verdict && { ...verdict, found: wrong.length === 0 ? "all" : `${wrong.length} wrong`, wrong };
}

export const tokenChecks: readonly Check[] = [
  { invariant: "I7", promise: "no call after completion", look: silenceAfterCompletion },
  {
    invariant: "I8",
    promise: "at most three calls for each delivery, more only after 429 or 503, never early",
    look: onTokens("tokens called within bounds", callsBounded),
  },
  { invariant: "I9", promise: "the last outcome that counted wins, as the API sent it", look: contentRight },
  {
    invariant: "I12",
    promise: "no token fails for somebody else's trouble",
    look: onTokens("tokens that fail by their own API alone", failsByItsOwnApi),
  },
];
