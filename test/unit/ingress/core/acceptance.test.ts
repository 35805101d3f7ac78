import { describe, expect, it } from "vitest";
import type { SendResult } from "../../../../services/common/kafka/contracts.ts";
import { type AcceptancePorts, accept, type Claim, type Draft } from "../../../../services/ingress/core/acceptance.ts";

const nineMs = Date.UTC(2026, 0, 31, 9, 30);
const reset = String(Date.UTC(2026, 0, 31, 10) / 1000);

function draftOf(refreshId: string, requestedMs = nineMs): Draft {
  return {
    record: {
      refresh_id: refreshId,
      project_id: 7,
      collection_address: "0x",
      token_ids: ["1"],
      requested_at: requestedMs * 1000,
      deadline: 0,
      metadata_api_url: "",
      token_policy: "open",
      max_concurrency: null,
      max_requests_per_second: null,
    },
    bytes: Buffer.from(refreshId),
  };
}

interface Script {
  readonly claim?: Claim;
  readonly granted?: boolean;
  readonly used?: number;
  readonly sent?: SendResult;
  readonly released?: boolean;
}

const acknowledged: SendResult = { ok: true, partition: 0, offset: 0, appendTimeMs: 0 };
const failed = (reason: "not_sent" | "unknown" | "too_large"): SendResult => ({ ok: false, reason, message: "" });

/** Ports that follow a script and write down every effect. */
function scripted(script: Script): AcceptancePorts & { effects: string[] } {
  const effects: string[] = [];
  const note = <T>(effect: string, result: T): T => {
    effects.push(effect);
    return result;
  };
  return {
    effects,
    limit: {
      take: async ({ refreshId, hour }) =>
        note(`take ${refreshId} at ${new Date(hour.startMicros / 1000).getUTCHours()}`, {
          granted: script.granted ?? true,
          used: script.used ?? 4,
        }),
      giveBack: async ({ refreshId }) => note(`give back ${refreshId}`, undefined),
      look: async () => note("look", 9),
    },
    claims: {
      claim: async (key, draft) => note(`claim ${key}`, script.claim ?? { state: "pending", draft, resumed: false }),
      accept: async (_key, record) => note(`accepted ${record.refresh_id}`, undefined),
      release: async (_key, record) => note(`release ${record.refresh_id}`, script.released ?? true),
    },
    publish: async ({ bytes }) => note(`publish ${bytes}`, script.sent ?? acknowledged),
    writeRows: async (record) => note(`rows ${record.refresh_id}`, undefined),
  };
}

async function request(script: Script, idempotencyKey?: string) {
  const ports = scripted(script);
  const order = { draft: draftOf("new"), refreshesPerHour: 20, idempotencyKey, nowMs: nineMs };
  return { answer: await accept(order, ports), effects: ports.effects };
}

const limits = (remaining: string) => ({
  "x-svc-refreshes-limit": "20",
  "x-svc-remaining-refreshes": remaining,
  "x-svc-refresh-limit-reset": reset,
});

describe("without an idempotency key", () => {
  it.each<[string, Script, string[], object]>([
    [
      "is accepted: published before its rows are written",
      {},
      ["take new at 9", "publish new", "rows new"],
      { status: 202, body: { refresh_id: "new" }, headers: limits("16") },
    ],
    [
      "is refused in a full hour: nothing is published",
      { granted: false, used: 20 },
      ["take new at 9"],
      { status: 429, body: { code: "refresh_limit_exceeded" }, headers: { ...limits("0"), "retry-after": "1800" } },
    ],
    [
      "gives its place back when nothing was sent",
      { sent: failed("not_sent") },
      ["take new at 9", "publish new", "give back new"],
      { status: 503, body: { code: "unavailable" }, headers: { ...limits("17"), "retry-after": "5" } },
    ],
    [
      "gives its place back when it was too large",
      { sent: failed("too_large") },
      ["take new at 9", "publish new", "give back new"],
      { status: 503, body: { code: "unavailable" } },
    ],
    [
      "keeps its place and writes nothing when the end is unknown",
      { sent: failed("unknown") },
      ["take new at 9", "publish new"],
      { status: 503, body: { code: "acceptance_unknown" }, headers: { ...limits("16"), "retry-after": "5" } },
    ],
  ])("%s", async (_name, script, effects, answer) => {
    expect(await request(script)).toMatchObject({ effects, answer });
  });

  it("names the refresh that may exist", async () => {
    const { answer } = await request({ sent: failed("unknown") });
    expect(JSON.stringify(answer.body)).toContain("refresh new may have been requested");
  });
});

describe("with an idempotency key", () => {
  const earlier = draftOf("earlier");

  it.each<[string, Script, string[], object]>([
    [
      "claims it before it takes a place",
      {},
      ["claim k", "take new at 9", "publish new", "rows new", "accepted new"],
      { status: 202, body: { refresh_id: "new" }, headers: limits("16") },
    ],
    [
      "repeats the receipt of an accepted request, at no charge",
      { claim: { state: "accepted", refreshId: "earlier" } },
      ["claim k", "look"],
      { status: 202, body: { refresh_id: "earlier" }, headers: limits("11") },
    ],
    [
      "carries a pending request out under its own id and with its own bytes",
      { claim: { state: "pending", draft: earlier, resumed: true } },
      ["claim k", "take earlier at 9", "publish earlier", "rows earlier", "accepted earlier"],
      { status: 202, body: { refresh_id: "earlier" } },
    ],
    [
      "refuses another request under the same key",
      { claim: { state: "other_request" } },
      ["claim k"],
      { status: 422, body: { code: "idempotency_key_reused" } },
    ],
    [
      "frees the key in a full hour",
      { granted: false, used: 20 },
      ["claim k", "take new at 9", "release new"],
      { status: 429, headers: { ...limits("0"), "retry-after": "1800" } },
    ],
    [
      "frees the key, then the place, when nothing was sent",
      { sent: failed("not_sent") },
      ["claim k", "take new at 9", "publish new", "release new", "give back new"],
      { status: 503, headers: limits("17") },
    ],
    [
      "keeps the place, and does not say that nothing exists, when the key could not be freed: a repetition may be sending it",
      { sent: failed("not_sent"), released: false },
      ["claim k", "take new at 9", "publish new", "release new"],
      { status: 503, body: { code: "acceptance_unknown" }, headers: limits("16") },
    ],
    [
      "keeps the key of a request that may have been sent before in a full hour",
      { claim: { state: "pending", draft: earlier, resumed: true }, granted: false, used: 20 },
      ["claim k", "take earlier at 9"],
      { status: 429, headers: { ...limits("0"), "retry-after": "1800" } },
    ],
    [
      "frees nothing when nothing was sent of a request that may have been sent before",
      { claim: { state: "pending", draft: earlier, resumed: true }, sent: failed("not_sent") },
      ["claim k", "take earlier at 9", "publish earlier"],
      { status: 503, body: { code: "acceptance_unknown" }, headers: limits("16") },
    ],
    [
      "leaves the key pending when the end is unknown",
      { sent: failed("unknown") },
      ["claim k", "take new at 9", "publish new"],
      { status: 503, body: { code: "acceptance_unknown" } },
    ],
  ])("%s", async (_name, script, effects, answer) => {
    const result = await request(script, "k");
    expect(result.effects.toSorted()).toEqual(effects.toSorted());
    expect(result.effects.slice(0, 3)).toEqual(effects.slice(0, 3));
    expect(result.answer).toMatchObject(answer);
  });

  const yesterday = draftOf("earlier", nineMs - 3_600_000);

  it("charges a request of an earlier hour to that hour, and tells of this one", async () => {
    const { answer, effects } = await request({ claim: { state: "pending", draft: yesterday, resumed: true } }, "k");
    expect(effects).toContain("take earlier at 8");
    expect(answer).toMatchObject({ status: 202, headers: limits("11") });
  });

  it("publishes nothing when the headers of its answer could not be told afterwards", async () => {
    const ports = scripted({ claim: { state: "pending", draft: yesterday, resumed: true } });
    const look = () => Promise.reject(new Error("nobody to ask"));
    const order = { draft: draftOf("new"), refreshesPerHour: 20, idempotencyKey: "k", nowMs: nineMs };
    await expect(accept(order, { ...ports, limit: { ...ports.limit, look } })).rejects.toThrow("nobody to ask");
    expect(ports.effects).toEqual(["claim k", "take earlier at 8"]);
  });

  it("lets a request of an earlier, full hour come back at once", async () => {
    const { answer, effects } = await request(
      { claim: { state: "pending", draft: yesterday, resumed: true }, granted: false },
      "k",
    );
    expect(effects).toContain("release earlier");
    expect(answer).toMatchObject({ status: 429, headers: { ...limits("11"), "retry-after": "1" } });
  });
});
