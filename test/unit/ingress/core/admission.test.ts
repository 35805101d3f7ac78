import { describe, expect, it } from "vitest";
import { type AdmissionPorts, type ApiKey, admit, countFailure } from "../../../../services/ingress/core/admission.ts";

const key: ApiKey = { projectId: 7, requestsPerSecond: 50 };

/** Ports that write down what was asked, in order. `full` buckets refuse. */
function ports(full: readonly string[] = []): AdmissionPorts & { asked: string[] } {
  const asked: string[] = [];
  const take = async (bucket: string) => {
    asked.push(bucket);
    return { allowed: !full.includes(bucket), retryAfterMs: 1_200 };
  };
  return {
    asked,
    findKey: async (text) => {
      asked.push(`find ${text}`);
      if (text === "broken") throw new Error("no Cassandra");
      return text === "known" ? key : undefined;
    },
    takeForAddress: take,
    takeForProject: ({ projectId, requestsPerSecond }) => take(`project ${projectId} at ${requestsPerSecond}`),
  };
}

const request = (apiKeys: readonly string[], knownRoute = true) => ({ bucket: "1.2.3.4", apiKeys, knownRoute });

describe("a request", () => {
  it.each<[string, string[], boolean, string[], string]>([
    ["without a key counts against its address", [], true, ["1.2.3.4"], "in"],
    ["with a known key counts against the key's project alone", ["known"], true, ["find known", "project 7 at 50"], "in"],
    ["with an unknown key counts against its address", ["unknown"], true, ["find unknown", "1.2.3.4"], "401 invalid_api_key"],
    ["with an empty key counts against its address", [""], true, ["find ", "1.2.3.4"], "401 invalid_api_key"],
    ["with two keys counts against its address, unasked", ["known", "known"], true, ["1.2.3.4"], "401 invalid_api_key"],
    ["for an unknown path counts against its address, its key unasked", ["known"], false, ["1.2.3.4"], "in"],
    ["whose key cannot be checked counts against its address", ["broken"], true, ["find broken", "1.2.3.4"], "503 unavailable"],
  ])("%s", async (_name, apiKeys, knownRoute, asked, outcome) => {
    const used = ports();
    const admission = await admit(request(apiKeys, knownRoute), used);
    expect(used.asked).toEqual(asked);
    expect(admission.ok ? "in" : `${admission.refusal.status} ${admission.refusal.body.code}`).toBe(outcome);
  });

  it.each<[string, string[], string]>([
    ["an address over its limit", [], "1.2.3.4"],
    ["an unknown key from an address over its limit", ["unknown"], "1.2.3.4"],
    ["a key that cannot be checked from an address over its limit", ["broken"], "1.2.3.4"],
    ["a project over its limit", ["known"], "project 7 at 50"],
  ])("is told to wait: %s", async (_name, apiKeys, full) => {
    expect(await admit(request(apiKeys), ports([full]))).toMatchObject({
      refusal: { status: 429, headers: { "retry-after": "2" }, body: { code: "rate_limit_exceeded" } },
    });
  });

  it("with a known key gets in from an address over its limit", async () => {
    expect(await admit(request(["known"]), ports(["1.2.3.4"]))).toEqual({ ok: true, caller: { bucket: "1.2.3.4", key } });
  });
});

describe("a failure", () => {
  it.each([401, 403, 404])("%i with a known key counts against the address too", async (status) => {
    const used = ports();
    expect(await countFailure({ bucket: "1.2.3.4", key }, { status }, used)).toEqual({ status });
    expect(used.asked).toEqual(["1.2.3.4"]);
    expect(await countFailure({ bucket: "1.2.3.4", key }, { status }, ports(["1.2.3.4"]))).toMatchObject({ status: 429 });
  });

  it.each([200, 202, 400, 413, 415, 422, 429, 503])("%i with a known key does not", async (status) => {
    const used = ports();
    await countFailure({ bucket: "1.2.3.4", key }, { status }, used);
    expect(used.asked).toEqual([]);
  });

  it("without a key was counted before", async () => {
    const used = ports();
    await countFailure({ bucket: "1.2.3.4", key: undefined }, { status: 401 }, used);
    expect(used.asked).toEqual([]);
  });
});
