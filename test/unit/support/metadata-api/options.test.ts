import { describe, expect, it } from "vitest";
import { hostileNames } from "../../../support/metadata-api/hostile-answers.ts";
import { createProgram, type ProgramOptions } from "../../../support/metadata-api/options.ts";
import { changeSettings, defaultSettings, type Settings } from "../../../support/metadata-api/settings.ts";

/** What the command line says, or the complaint about it. */
async function parse(...flags: string[]): Promise<ProgramOptions | string> {
  let complaint = "";
  let started: ProgramOptions | undefined;
  const program = createProgram((options) => {
    started = options;
    return Promise.resolve();
  });
  program.exitOverride().configureOutput({
    writeErr: (text) => {
      complaint += text;
    },
  });
  await program.parseAsync(flags, { from: "user" }).catch(() => {});
  return started ?? complaint.trim();
}

async function settingsOf(...flags: string[]): Promise<Settings | string> {
  const parsed = await parse(...flags);
  return typeof parsed === "string" ? parsed : parsed.settings;
}

describe("the command line", () => {
  it("starts an API that answers well and at once when it says nothing", async () => {
    expect(await parse()).toEqual({
      port: 8_095,
      controlPort: 8_096,
      logCalls: 100_000,
      logFile: undefined,
      settings: defaultSettings,
    });
  });

  it.each<[string, Partial<Settings>]>([
    ["--latency 20", { latency: { kind: "fixed", ms: 20 } }],
    ["--latency 10..50.5", { latency: { kind: "range", fromMs: 10, toMs: 50.5 } }],
    ["--latency median=20,p99=200", { latency: { kind: "distribution", medianMs: 20, p99Ms: 200 } }],
    ["--mix 404=0.01,503=.05,hang=0.001", { mix: { "404": 0.01, "503": 0.05, hang: 0.001 } }],
    ["--faulty-calls 1", { faultyCalls: 1 }],
    ["--retry-after 3", { retryAfter: 3 }],
    ["--retry-after soon", { retryAfter: "soon" }],
    ["--limit 100/s", { limit: { kind: "fixed_window", perSecond: 100 } }],
    ["--limit sliding:100/s", { limit: { kind: "sliding_window", perSecond: 100 } }],
    ["--limit bucket:0.5/s,burst=20", { limit: { kind: "token_bucket", perSecond: 0.5, burst: 20 } }],
    ["--limit in-flight:8", { limit: { kind: "in_flight", calls: 8 } }],
    ["--limit-status 503", { limitStatus: 503 }],
    ["--body-bytes 1024", { bodyBytes: 1_024 }],
    ["--body-bytes 200..4000", { bodyBytes: { from: 200, to: 4_000 } }],
    ["--revision 7", { revision: 7 }],
    ["--keep-alive-calls 10 --keep-alive-idle 500", { keepAlive: { calls: 10, idleMs: 500 } }],
    ["--hostile ssh-banner", { hostile: "ssh-banner" }],
    ["--seed 42", { seed: 42 }],
    ['--settings {"seed":3,"revision":2} --seed 42', { seed: 3, revision: 2 }],
  ])("takes %s", async (line, change) => {
    expect(await settingsOf(...line.split(" "))).toEqual({ ...defaultSettings, ...change });
  });

  it.each([
    ["--latency soon", "It must look like 20, or 10..50, or median=20,p99=200"],
    ["--latency -5", "It must look like"],
    ["--latency 50..10", "latency: from must not be above to"],
    ["--latency 700000", "latency.ms: Too big"],
    ["--latency median=20,p99=10", "latency: medianMs must not be above p99Ms"],
    ["--mix 404", "It must look like 404=0.01"],
    ["--mix 404=0.6,500=0.6", "mix: shares must add up to at most 1"],
    ["--mix 404=2", "mix.404: Too big"],
    ["--mix slow=0.1", "mix.slow: must be a status such as 404, or one of hang, reset"],
    ["--mix 101=0.1", "mix.101: must be a status"],
    ["--limit 100", "It must look like 100/s"],
    ["--limit 0/s", "limit.perSecond: Too small"],
    ["--limit in-flight:0", "limit.calls: Too small"],
    ["--limit-status 500", "Allowed choices are 429, 503"],
    ["--body-bytes 1k", "It must look like 1024"],
    ["--body-bytes 5..1", "bodyBytes: "],
    ["--keep-alive-calls 0", "It must be a whole number from 1"],
    ["--hostile ghost", "hostile: must be a known hostile answer"],
    ["--retry-after \u00e9", "retryAfter: "],
    ["--port 65536", "It must be a whole number from 0 to 65535"],
    ["--port -1", "It must be a whole number"],
    ["--settings [", "It must be a JSON object"],
    ['--settings {"latancy":1}', 'Unrecognized key: "latancy"'],
    ["--latancy 5", "unknown option '--latancy'"],
    ["extra", "too many arguments"],
  ])("refuses %s and says why", async (line, complaint) => {
    expect(await parse(...line.split(" "))).toContain(complaint);
  });

  it("tells in its help of every setting, fault and hostile answer, and of the control endpoint", () => {
    let help = "";
    const program = createProgram(() => Promise.resolve());
    program.configureOutput({
      writeOut: (text) => {
        help += text;
      },
    });
    program.outputHelp();
    for (const word of ["PUT /settings", "not_an_object", ...hostileNames]) expect(help).toContain(word);
  });
});

it("a change of settings leaves the others, and reports all its mistakes together", () => {
  const current: Settings = { ...defaultSettings, revision: 5 };
  expect(changeSettings(current, { limitStatus: 503 })).toEqual({ ok: true, settings: { ...current, limitStatus: 503 } });
  const wrong = changeSettings(current, { limitStatus: 500, seed: -1 });
  expect(!wrong.ok && wrong.problems.map((problem) => problem.split(":")[0])).toEqual(["seed", "limitStatus"]);
  expect(changeSettings(current, null)).toEqual({ ok: false, problems: ["settings: must be an object"] });
});
