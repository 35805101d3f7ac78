import { describe, expect, it } from "vitest";
import { type Behaviour, metadataText } from "../../../support/metadata-api/behaviour.ts";
import { chanceOf } from "../../../support/metadata-api/chance.ts";
import { decide, type SeenCall } from "../../../support/metadata-api/decide.ts";
import { createLimiter } from "../../../support/metadata-api/limiter.ts";
import { defaultSettings, type SettingsChange } from "../../../support/metadata-api/settings.ts";

const call: SeenCall = { tokenId: "7", callNumber: 1, nowMs: 0, inFlight: 0, random: () => 0.5 };

function behaviour(change: SettingsChange, seen: Partial<SeenCall> = {}): Behaviour {
  return decide({ ...defaultSettings, ...change }, undefined, { ...call, ...seen }).behaviour;
}

/** What 20,000 calls are answered, each by its own chance. */
function behaviours(change: SettingsChange, seed = 1): Behaviour[] {
  return Array.from({ length: 20_000 }, (_, id) => behaviour(change, { random: chanceOf(seed, String(id), 1) }));
}

describe("a call", () => {
  it("is answered well and at once by default", () => {
    expect(behaviour({})).toEqual({ body: metadataText("7", { revision: 1, bytes: null }) });
  });

  it("waits for a fixed time, or one of a range, or one of a distribution", () => {
    expect(behaviour({ latency: { kind: "fixed", ms: 20 } }).delayMs).toBe(20);
    expect(behaviour({ latency: { kind: "range", fromMs: 10, toMs: 50 } }).delayMs).toBe(30);
    const latency = { kind: "distribution", medianMs: 20, p99Ms: 200 } as const;
    const sorted = behaviours({ latency })
      .map(({ delayMs = 0 }) => delayMs)
      .sort((one, other) => one - other);
    expect(sorted[10_000]).toBeGreaterThan(19);
    expect(sorted[10_000]).toBeLessThan(21);
    expect(sorted[19_800]).toBeGreaterThan(170);
    expect(sorted[19_800]).toBeLessThan(230);
    expect(sorted.at(-1)).toBeLessThanOrEqual(2_000);
  });

  it.each([
    [0, { status: 404 }],
    [0.1249, { status: 404 }],
    [0.125, { hang: true }],
    [0.3749, { hang: true }],
    [0.375, { body: metadataText("7", { revision: 1, bytes: null }) }],
  ])("that draws %d of a mix of an eighth 404 and a quarter hanging gets its share", (drawn, expected) => {
    expect(behaviour({ mix: { hang: 0.25, "404": 0.125 } }, { random: () => drawn })).toEqual(expected);
  });

  it("fails as often as the mix says, over many", () => {
    const failed = behaviours({ mix: { "500": 0.02, reset: 0.03 } });
    const shareOf = (fails: (one: Behaviour) => boolean) => failed.filter(fails).length / failed.length;
    expect(shareOf(({ status }) => status === 500)).toBeCloseTo(0.02, 2);
    expect(shareOf(({ reset }) => reset === true)).toBeCloseTo(0.03, 2);
  });

  it("fails the same when its seed is the same, however long it takes, and differently by another seed", () => {
    const change: SettingsChange = { mix: { "503": 0.5 } };
    const slow: SettingsChange = { ...change, latency: { kind: "range", fromMs: 1, toMs: 9 } };
    const statuses = (all: readonly Behaviour[]) => all.map(({ status }) => status);
    expect(statuses(behaviours(slow))).toEqual(statuses(behaviours(change)));
    expect(statuses(behaviours(change, 2))).not.toEqual(statuses(behaviours(change)));
  });

  it("fails only as one of the first of its token where faults end", () => {
    const change: SettingsChange = { mix: { "503": 1 }, faultyCalls: 2 };
    expect([1, 2, 3, 4].map((callNumber) => behaviour(change, { callNumber }).status)).toEqual([503, 503, undefined, undefined]);
  });

  it.each([
    ["429", { status: 429, retryAfter: 3 }],
    ["503", { status: 503, retryAfter: 3 }],
    ["500", { status: 500 }],
    ["302", { status: 302, headers: { location: "/elsewhere" } }],
    ["not_json", { body: expect.stringContaining("<title>"), headers: { "content-type": "text/html" } }],
    ["not_an_object", { body: "[]" }],
    ["empty", { body: "" }],
    ["too_large", { body: expect.stringMatching(/^.{300013}$/) }],
    ["reset", { reset: true }],
    ["truncated", { hostile: "body-shorter-than-its-length-then-closed" }],
  ] as const)("that fails as %s", (fault, expected) => {
    expect(behaviour({ mix: { [fault]: 1 }, retryAfter: 3 })).toEqual(expected);
  });

  it("beyond the limit is refused at once, with what the settings say, before faults", () => {
    const settings = {
      ...defaultSettings,
      retryAfter: 2,
      limitStatus: 503,
      mix: { "404": 1 },
      latency: { kind: "fixed", ms: 50 },
    } as const;
    const limiter = createLimiter({ kind: "in_flight", calls: 1 });
    expect(decide(settings, limiter, call)).toEqual({ behaviour: { status: 404, delayMs: 50 }, refused: false });
    expect(decide(settings, limiter, { ...call, inFlight: 1 })).toEqual({
      behaviour: { status: 503, retryAfter: 2 },
      refused: true,
    });
  });

  it("gets hostile bytes, and nothing else, in hostile mode", () => {
    const settings = { ...defaultSettings, hostile: "silence", mix: { "404": 1 } } as const;
    expect(decide(settings, () => false, call)).toEqual({ behaviour: { hostile: "silence" }, refused: false });
  });
});

describe("the metadata", () => {
  it.each([160, 1_024, 4_096, 262_144])("has exactly %i bytes when told so", (bytes) => {
    const text = metadataText("1234567890", { revision: 3, bytes });
    expect(Buffer.byteLength(text)).toBe(bytes);
    expect(JSON.parse(text)).toMatchObject({ name: "Token #1234567890", revision: 3 });
  });

  it("is never cut below what it needs", () => {
    expect(JSON.parse(metadataText("7", { revision: 1, bytes: 10 }))).toMatchObject({ name: "Token #7", filler: "" });
  });

  it("is new in every revision, and of a size by chance in a range", () => {
    expect(metadataText("7", { revision: 1, bytes: null })).not.toBe(metadataText("7", { revision: 2, bytes: null }));
    const sizes = behaviours({ bodyBytes: { from: 200, to: 300 } }).map(({ body }) => String(body).length);
    expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([200, 300]);
  });
});
