import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { metadataText } from "../../../support/metadata-api/behaviour.ts";
import { type SimulatorProcess, startSimulator } from "../../../support/metadata-api/client.ts";
import { defaultSettings } from "../../../support/metadata-api/settings.ts";
import { waitFor } from "../../../support/wait-for.ts";

let api: SimulatorProcess;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "metadata-api-"));
  api = await startSimulator({ logFile: join(folder, "calls.ndjson") });
});
afterAll(async () => {
  await api.close();
  await rm(folder, { recursive: true });
});
beforeEach(async () => {
  await api.change(defaultSettings);
  await api.forget();
});

const get = (tokenId: string | number, init?: RequestInit) => fetch(`${api.url}/${tokenId}`, init);
const control = (path: string, init?: RequestInit) => fetch(api.controlUrl + path, init);
/** A caller that leaves when its call has arrived. */
async function leave(tokenId: string): Promise<void> {
  const caller = new AbortController();
  const answer = expect(get(tokenId, { signal: caller.signal })).rejects.toThrow();
  await inFlight(1);
  caller.abort();
  await answer;
  await inFlight(0);
}
const inFlight = (count: number) =>
  waitFor(
    "calls in flight",
    () => api.counts(),
    (counts) => counts.inFlight === count,
  );
const statuses = async (count: number) =>
  (await Promise.all(Array.from({ length: count }, (_, id) => get(id)))).map(({ status }) => status);

describe("the simulator as a process", () => {
  it("answers with each token's metadata, which its caller can foretell", async () => {
    await api.change({ bodyBytes: 1_024, revision: 3 });
    const response = await get("42");
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.text()).toBe(metadataText("42", { revision: 3, bytes: 1_024 }));
  });

  it("keeps a log of its calls and counts them, until they are forgotten", async () => {
    await api.change({ mix: { "404": 1 }, faultyCalls: 1 });
    for (const id of ["7", "7", "8"]) await get(`${id}?x=/y`);
    const calls = await api.calls();
    expect(calls.map(({ tokenId, callNumber, end }) => [tokenId, callNumber, end])).toEqual([
      ["7", 1, "404"],
      ["7", 2, "200"],
      ["8", 1, "404"],
    ]);
    expect(calls.map(({ atMs }) => atMs)).toEqual(calls.map(({ atMs }) => atMs).toSorted((one, other) => one - other));
    const counts = await api.forget();
    expect(counts).toMatchObject({ calls: 3, ends: { "200": 1, "404": 2 }, refused: 0, inFlight: 0, maxInFlight: 1 });
    expect(counts.firstCallAtMs).toBe(calls[0]?.atMs);
    expect(counts.load.cpuMs).toBeGreaterThan(0);
    expect(counts.load.eventLoopUtilization).toBeLessThanOrEqual(1);
    expect(await api.calls()).toEqual([]);
    expect(await api.counts()).toMatchObject({ calls: 0, ends: {}, firstCallAtMs: null });
  });

  it("changes its behaviour while it runs, call by call", async () => {
    expect(await statuses(2)).toEqual([200, 200]);
    await api.change({ mix: { "500": 1 } });
    expect(await statuses(2)).toEqual([500, 500]);
    expect(await api.settings()).toEqual({ ...defaultSettings, mix: { "500": 1 } });
    await api.change({ mix: {} });
    expect(await statuses(2)).toEqual([200, 200]);
  });

  it("refuses what is beyond a hidden limit in flight, and admits again when the others have gone", async () => {
    await api.change({ limit: { kind: "in_flight", calls: 3 }, mix: { hang: 1 }, retryAfter: 5 });
    const callers = new AbortController();
    const answers = Array.from({ length: 8 }, (_, id) => get(id, { signal: callers.signal }).catch(() => undefined));
    await inFlight(3);
    expect((await Promise.race(answers))?.headers.get("retry-after")).toBe("5");
    await waitFor(
      "the refusals",
      () => api.counts(),
      ({ refused }) => refused === 5,
    );
    callers.abort();
    expect((await Promise.all(answers)).filter((answer) => answer?.status === 429)).toHaveLength(5);
    await inFlight(0);
    await api.change({ mix: {} });
    expect((await get("1")).status).toBe(200);
  });

  it("admits what a bucket holds, and a limit that is set again begins full", async () => {
    const limit = { kind: "token_bucket", perSecond: 0.01, burst: 4 } as const;
    await api.change({ limit });
    expect((await statuses(6)).filter((status) => status === 200)).toHaveLength(4);
    await api.change({ limitStatus: 503 });
    expect(await statuses(2)).toEqual([503, 503]);
    await api.change({ limit });
    expect((await statuses(6)).filter((status) => status === 200)).toHaveLength(4);
  });

  it("leaves a caller hanging until that one leaves, and then counts it no more", async () => {
    await api.change({ mix: { hang: 1 }, limit: { kind: "in_flight", calls: 1 } });
    await leave("1");
    expect((await api.counts()).ends).toEqual({ hang: 1 });
    await api.change({ mix: { reset: 1 } });
    await expect(get("2")).rejects.toThrow();
    expect((await api.calls()).map(({ end }) => end)).toEqual(["hang", "reset"]);
  });

  it("tells a caller that left before its answer from one that got it", async () => {
    await api.change({ latency: { kind: "fixed", ms: 10_000 } });
    await leave("1");
    expect((await api.calls()).map(({ end }) => end)).toEqual(["left"]);
  });

  it("sends hostile bytes", async () => {
    await api.change({ hostile: "ssh-banner" });
    await expect(get("1")).rejects.toThrow();
    await api.change({ hostile: "103-then-200" });
    expect(await (await get("1")).text()).toBe('{"name":"a"}');
    expect((await api.calls()).map(({ end }) => end)).toEqual(["hostile", "hostile"]);
  });

  it("closes connections after so many answers, and tells so", async () => {
    await api.change({ keepAlive: { calls: 2, idleMs: null } });
    const before = (await api.counts()).connections.opened;
    const announced: (string | null)[] = [];
    for (let call = 0; call < 6; call++) {
      const response = await get(call);
      await response.text();
      announced.push(response.headers.get("connection"));
    }
    expect(announced.filter((value) => value === "close").length).toBeGreaterThanOrEqual(2);
    expect((await api.counts()).connections.opened - before).toBeGreaterThanOrEqual(2);
  });

  it("closes connections after so long without a call", async () => {
    await api.change({ keepAlive: { calls: null, idleMs: 50 } });
    await (await get("1")).text();
    await waitFor(
      "the connections to be closed",
      () => api.counts(),
      ({ connections }) => connections.open === 0,
    );
  });

  it("writes each ended call to its file", async () => {
    await (await get("424242")).text();
    const line = await waitFor(
      "the line of the call",
      async () => (await readFile(join(folder, "calls.ndjson"), "utf8")).split("\n").find((one) => one.includes('"424242"')),
      (found) => found !== undefined,
    );
    expect(JSON.parse(line ?? "")).toMatchObject({ tokenId: "424242", callNumber: 1, end: "200", refused: false });
  });
});

describe("the control endpoint", () => {
  it("gives the log in pages", async () => {
    await statuses(25);
    const first = (await (await control("/calls?count=10")).json()) as { calls: unknown[]; next: number };
    const second = (await (await control(`/calls?after=${first.next}&count=100`)).json()) as { calls: unknown[] };
    expect([first.calls.length, second.calls.length]).toEqual([10, 15]);
  });

  it.each([
    ["PUT", "/settings", '{"latency":5}', 400, "latency: "],
    ["PUT", "/settings", '{"latancy":5}', 400, "latancy"],
    ["PUT", "/settings", "{", 400, "must be JSON"],
    ["PUT", "/settings", "[]", 400, "must be an object"],
    ["PUT", "/settings", " ".repeat(70_000), 400, "at most 65536 bytes"],
    ["GET", "/calls?after=x", undefined, 400, "after: "],
    ["GET", "/calls?count=0", undefined, 400, "count: must be 1 to 10000"],
    ["POST", "/settings", "{}", 404, "no POST /settings"],
    ["GET", "/nothing", undefined, 404, "see GET /"],
  ])("answers %s %s with a wrong %j by %i and why", async (method, path, body, status, why) => {
    const response = await control(path, { method, ...(body === undefined ? {} : { body }) });
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(why);
    expect(await api.settings()).toEqual(defaultSettings);
  });

  it("tells what it can do", async () => {
    expect(await (await control("/")).json()).toMatchObject({ "PUT /settings": expect.any(String) });
  });
});

describe("the program", () => {
  it("says what is wrong with its settings and does not start", async () => {
    await expect(startSimulator({ settings: { seed: -1 } })).rejects.toThrow("seed: ");
    const taken = Number(new URL(api.url).port);
    await expect(startSimulator({ port: taken })).rejects.toThrow("EADDRINUSE");
    await expect(startSimulator({ logFile: "/nowhere/calls.ndjson" })).rejects.toThrow("ENOENT");
  });

  it("is gone when its parent closes it, and when it is interrupted", async () => {
    const child = await startSimulator();
    await child.close();
    await expect(fetch(child.controlUrl)).rejects.toThrow();
    const main = new URL("../../../support/metadata-api/main.ts", import.meta.url).pathname;
    const typed = spawn(process.execPath, ["--no-warnings", main, "--port", "0", "--control-port", "0"], { stdio: "pipe" });
    const [text] = (await once(typed.stdout.setEncoding("utf8"), "data")) as [string];
    expect(text).toMatch(/Metadata API {2}http:\/\/127\.0\.0\.1:\d+\/metadata/);
    const exited = once(typed, "exit");
    typed.kill("SIGINT");
    expect(await exited).toEqual([0, null]);
  });
});
