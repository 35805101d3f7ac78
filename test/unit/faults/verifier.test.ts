import { describe, expect, it } from "vitest";
import type { RefreshRequested } from "../../../services/common/messages/records.ts";
import { Account } from "../../faults/account.ts";
import { LogWatch } from "../../faults/log-watch.ts";
import type { Evidence, RefreshEvidence, TokenEvidence } from "../../faults/verify/evidence.ts";
import type { Invariant } from "../../faults/verify/finding.ts";
import { judge } from "../../faults/verify/verify.ts";
import { baseMs, call, outcome, project, record, refreshId, soundEvidence, textOf } from "./evidence.ts";

type Change = (evidence: Evidence) => Partial<Evidence>;

const broken = (evidence: Evidence): Invariant[] =>
  judge(evidence).flatMap(({ invariant, wrong }) => (wrong.length > 0 ? invariant : []));

const ofRefresh = (change: (refresh: RefreshEvidence) => object): Change => {
  return ({ refreshes }) => ({ refreshes: refreshes.map((refresh) => ({ ...refresh, ...change(refresh) }) as RefreshEvidence) });
};
const ofToken = (tokenId: string, change: (token: TokenEvidence) => object): Change => {
  return ({ tokens }) => ({
    tokens: tokens.map((token) => (token.tokenId === tokenId ? ({ ...token, ...change(token) } as TokenEvidence) : token)),
  });
};

it("finds nothing wrong with a refresh that ended well, and looks at every guarantee but the soak's", () => {
  const findings = judge(soundEvidence());
  expect(findings.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
  expect(findings.map(({ invariant }) => invariant)).toEqual([
    ...Array.from({ length: 17 }, (_, index) => `I${index + 1}`),
    "alive",
  ]);
});

describe("the verifier sees", () => {
  it.each<[string, Invariant, Change]>([
    [
      "a token without an outcome",
      "I1",
      ofRefresh(({ progressRow }) => ({ progressRow: { ...progressRow, done: Buffer.from([3]) } })),
    ],
    ["a token that both succeeded and failed", "I1", ofRefresh(() => ({ errorRows: [{ ordinal: 1 }, { ordinal: 2 }] }))],
    ["a sum that was not the request", "I2", () => ({ progressReads: { count: 1, wrong: [{ invariant: "I2", what: "x" }] } })],
    ["completed with tokens pending", "I3", () => ({ progressReads: { count: 1, wrong: [{ invariant: "I3", what: "x" }] } })],
    [
      "a count that counts twice",
      "I4",
      ofRefresh(({ progressRow }) => ({ progressRow: { ...progressRow, succeeded_count: 3 } })),
    ],
    [
      "an owner who is told other counts",
      "I4",
      ofRefresh(({ view }) => ({ view: { ...view, summary: { succeeded: 3, failed: 0, pending: 0 } } })),
    ],
    ["an accepted refresh that hangs", "I5", () => ({ unfinished: [refreshId] })],
    ["work that nobody was told of", "I5", () => ({ unclaimed: [{ refreshId: "other", tokenIds: ["9"] }] })],
    ["a refresh without a completion", "I6", ofRefresh(() => ({ completions: [] }))],
    [
      "a second completion of other bytes",
      "I6",
      ofRefresh(({ completions: [first] }) => ({ completions: [first, { ...first, bytes: Buffer.from("y") }] })),
    ],
    [
      "a second completion of another id",
      "I6",
      ofRefresh(({ completions: [first] }) => ({ completions: [first, { ...first, headers: { ce_id: "d" } }] })),
    ],
    ["a call after completion", "I7", ofToken("3", ({ calls }) => ({ calls: [...calls.slice(0, 1), call("3", 4, 900, "200")] }))],
    ["a call that nothing asked for", "I8", ofToken("1", ({ calls }) => ({ calls: [...calls, call("1", 5, 450, "200")] }))],
    ["a retry that is early", "I8", ofToken("3", () => ({ calls: [call("3", 3, 30, "503"), call("3", 4, 200, "200")] }))],
    [
      "a fourth call",
      "I8",
      ofToken("3", () => ({
        calls: ["503", "503", "503", "200"].map((end, index) => call("3", index, index * 1_000 - 5_000, end as "503")),
      })),
    ],
    ["a row of another content", "I9", ofToken("1", ({ row }) => ({ row: { ...row, metadata: "{}" } }))],
    ["a row of another version", "I9", ofToken("1", ({ row }) => ({ row: { ...row, version: 5n } }))],
    ["a change that was not published", "I9", ofToken("1", () => ({ states: [] }))],
    ["a text that the API never sent", "I9", ofToken("1", () => ({ project: { ...project, api: { textsOf: () => [] } } }))],
    [
      "a token that is published after the completion",
      "I9",
      ofToken("1", ({ states }) => ({ states: states.map((state) => ({ ...state, timestampMs: baseMs + 900 })) })),
    ],
    ["an error that is not shown", "I10", ofRefresh(() => ({ errors: [] }))],
    [
      "a limit that was passed",
      "I11",
      ({ refreshes: [first] }) => ({ refreshes: [first, first, first].filter((one) => one !== undefined) }),
    ],
    ["a failure that the API did not cause", "I12", ofToken("2", () => ({ calls: [call("2", 2, 100, "200")] }))],
    [
      "a commit before the outcome",
      "I13",
      () => ({ commits: new Map([["token.requested/0", [{ offset: 3, seenAtMs: baseMs + 400 }]]]) }),
    ],
    [
      "a commit of a refresh that was half split",
      "I13",
      ofRefresh(({ underWay, outcomes }) => ({ underWay: underWay.slice(0, 1), outcomes: outcomes.slice(0, 1) })),
    ],
    [
      "a commit before the completion",
      "I13",
      () => ({ commits: new Map([["outcome/0", [{ offset: 3, seenAtMs: baseMs + 505 }]]]) }),
    ],
    ["a dead letter that nobody provoked", "I14", () => ({ deadLetters: [record("dead", 0, Buffer.alloc(0), 0)] })],
    [
      "a completion before its request",
      "I15",
      ofRefresh(({ completions: [first] }) => ({ completions: [{ ...first, value: { ...first?.value, requested_at: 3 } }] })),
    ],
    ["a page that repeats", "I16", () => ({ listed: new Map([[project, [refreshId, refreshId]]]) })],
    ["a page that skips", "I16", () => ({ listed: new Map([[project, []]]) })],
    ["a secret in a log", "I17", () => ({ log: { lineCount: 1, leaks: ["x"] } })],
    ["a process that ended by itself", "alive", () => ({ unaskedEnds: ["fetcher"] })],
  ])("%s: %s", (_what, invariant, change) => {
    const evidence = soundEvidence();
    expect(broken({ ...evidence, ...change(evidence) })).toContain(invariant);
  });
});

describe("the verifier allows", () => {
  it("a call that a killed fetcher left behind to be made once more, and no second one", () => {
    const evidence = soundEvidence();
    evidence.account.repeats = 1;
    const calls = [call("1", 1, 100, "left"), call("1", 5, 200, "200")];
    expect(broken({ ...evidence, ...ofToken("1", () => ({ calls }))(evidence) })).toEqual([]);
    const three = [...calls, call("1", 6, 300, "200")];
    expect(broken({ ...evidence, ...ofToken("1", () => ({ calls: three }))(evidence) })).toEqual(["I8"]);
  });

  it("a time-out on a machine that had no time for anybody's call, and on no other", () => {
    const timedOut = outcome(1, "2", 1, 500);
    const value = { ...timedOut.value, error_code: "unable_to_retrieve_metadata", error_detail: "timeout", status_code: null };
    const change = ofToken("2", () => ({ calls: [call("2", 2, 100, "200")], counted: [{ ...timedOut, value }] }));
    const evidence = soundEvidence();
    expect(broken({ ...evidence, ...change(evidence) })).toEqual(["I12"]);
    expect(broken({ ...evidence, ...change(evidence), slowestProbeMs: 2_500 })).toEqual([]);
  });

  it("a later outcome of an ordinal that has one: the first wins", () => {
    const evidence = soundEvidence();
    const again = { ...outcome(0, "1", 9, 800), value: { ...outcome(0, "1", 9, 800).value, metadata: "{}" } };
    const changed = ofRefresh(({ outcomes }) => ({ outcomes: [...outcomes, again] }))(evidence);
    expect(broken({ ...evidence, ...changed })).toEqual([]);
  });
});

describe("a request without an answer", () => {
  const tokenIds = ["8", "9"];
  const published = (id: string) =>
    ({ refresh_id: id, project_id: project.projectId, token_ids: tokenIds }) as unknown as RefreshRequested;

  it("counts as accepted when it was published, once", () => {
    const account = new Account();
    account.requests.push({ project, tokenIds, idempotencyKey: undefined, answer: { kind: "unknown" } });
    account.adopt([published("one"), published("two")]);
    expect(account.accepted.map(({ refreshId: id }) => id)).toEqual(["one"]);
    account.adopt([published("one"), published("two")]);
    expect(account.accepted).toHaveLength(1);
  });

  it("asks for nothing when it was refused", () => {
    const account = new Account();
    account.requests.push({
      project,
      tokenIds,
      idempotencyKey: "a",
      answer: { kind: "refused", status: 503, code: "unavailable" },
    });
    account.adopt([published("one")]);
    expect(account.accepted).toEqual([]);
  });
});

describe("a log line", () => {
  it.each([
    ["a signature", `{"sig":"0x${"ab".repeat(65)}"}`],
    ["an API key", `{"key":"amr_${"x".repeat(49)}"}`],
    ["the admin token", '{"config":{"ADMIN_TOKEN":"dev-admin-token"}}'],
    ["a metadata body", '{"body":"{\\"image\\":\\"https://cdn.example/1.png\\"}"}'],
  ])("with %s is a leak", (_what, line) => {
    const watch = new LogWatch();
    watch.take("ingress", line);
    watch.take("ingress", `{"content_hash":"${"ab".repeat(32)}","tokens":"${textOf("1").length}"}`);
    const { lineCount, leaks } = watch.drain();
    expect([lineCount, leaks.length]).toEqual([2, 1]);
  });
});
