import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { TokenRefresh } from "../../services/common/messages/records.ts";
import type { MetadataApi } from "../support/metadata-api.ts";
import { startMetadataApi } from "../support/metadata-api.ts";
import { waitFor } from "../support/wait-for.ts";
import { createFetcherStage, type FetcherStage, refreshOf } from "./fetcher-stage.ts";

const tierMs = { "retry-2s": 300, "retry-60s": 2_500, "retry-600s": 12_000 };
let stage: FetcherStage;
let api: MetadataApi;
const processes: ChildProcess[] = [];

beforeAll(async () => {
  stage = await createFetcherStage("fetcher-restart", {
    delays: Object.entries(tierMs)
      .map(([tier, ms]) => `${tier}=${ms}`)
      .join(),
  });
});
afterAll(() => stage?.close());
// One for each test: what is called later, for an earlier test, is not counted.
beforeEach(async () => {
  api = await startMetadataApi();
});
afterEach(async () => {
  for (const child of processes.splice(0)) child.kill("SIGKILL");
  await api.close();
});

function spawnFetcher(): ChildProcess {
  const main = new URL("../../services/fetcher/main.ts", import.meta.url).pathname;
  const env = { ...process.env, ...stage.environment.env, LOG_LEVEL: "warn" };
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "ignore", "inherit"] });
  processes.push(child);
  return child;
}

const callCount = (record: TokenRefresh) => api.callsOf(record.token_id).length;
const calledAtLeast = (count: number) =>
  waitFor(
    "calls",
    () => api.calls.length,
    (calls) => calls >= count,
  );

describe("a fetcher that stops", () => {
  it("finishes what is under way, leaves the rest untouched, and the next one makes each call once", async () => {
    api.otherwise({ delayMs: 400 });
    const records = refreshOf(api, 60, { max_concurrency: 10 });
    const first = await stage.start();
    await stage.submit(records);
    await calledAtLeast(15);
    await first.stop();
    expect(first.failures).toEqual([]);
    const called = api.calls.length;
    expect(called).toBeLessThan(60);
    // Every call that was made has its outcome.
    await stage.outcomesOf(records.filter((record) => callCount(record) > 0));
    const second = await stage.start();
    await stage.outcomesOf(records);
    await stage.allCommitted();
    expect(records.map(callCount)).toEqual(records.map(() => 1));
    await second.stop();
  });

  it("does so as a process too, on SIGTERM, and exits with 0", async () => {
    api.otherwise({ delayMs: 300 });
    const records = refreshOf(api, 40, { max_concurrency: 8 });
    await stage.submit(records);
    const first = spawnFetcher();
    await calledAtLeast(12);
    first.kill("SIGTERM");
    const [code] = await once(first, "exit");
    expect(code).toBe(0);
    const second = await stage.start();
    await stage.outcomesOf(records);
    expect(records.map(callCount)).toEqual(records.map(() => 1));
    await second.stop();
  });
});

describe("a fetcher that is killed", () => {
  it("costs at most one more call for what it had under way, and no token its outcome", async () => {
    api.otherwise({ delayMs: 300 });
    const records = refreshOf(api, 80, { max_concurrency: 10 });
    await stage.submit(records);
    const first = spawnFetcher();
    await calledAtLeast(25);
    first.kill("SIGKILL");
    await once(first, "exit");
    const second = await stage.start();
    // The group misses the killed member for its session time-out first.
    await stage.outcomesOf(records);
    await stage.allCommitted();
    const counts = records.map(callCount);
    expect(Math.min(...counts)).toBe(1);
    expect(Math.max(...counts)).toBeLessThanOrEqual(2);
    await second.stop();
  });
});

describe("records in a delay tier", () => {
  it("wait for their time after a restart, and are never early", async () => {
    const [record] = refreshOf(api, 1) as [TokenRefresh];
    api.script(record.token_id, [{ status: 429, retryAfter: 2 }, {}]);
    const first = await stage.start();
    await stage.submit([record]);
    const ofRecord = ({ value }: { value: TokenRefresh }) => value.refresh_id === record.refresh_id;
    const waiting = await stage.tier("retry-60s").until("the record that waits", (seen) => seen.some(ofRecord));
    await first.stop();
    const second = await stage.start();
    const [outcome] = await stage.outcomesOf([record]);
    expect(outcome).toMatchObject({ status_code: 200, attempts: [{ status: 429 }, { status: 200 }] });
    const dueMs = (waiting.find(ofRecord)?.timestampMs ?? Number.NaN) + tierMs["retry-60s"];
    expect(api.callsOf(record.token_id)[1]?.wallMs).toBeGreaterThanOrEqual(dueMs);
    await second.stop();
  });

  it("that came due while no fetcher ran are called at once by one that has produced nothing yet", async () => {
    const [record] = refreshOf(api, 1, { attempt: 2 }) as [TokenRefresh];
    const tier = stage.environment.topics.retryTiers.find(({ baseName }) => baseName.includes("retry-600s"));
    const [appendedMs = Number.NaN] = await stage.submit([record], tier);
    await waitFor(
      "the record is due",
      () => Date.now(),
      (now) => now > appendedMs + tierMs["retry-600s"],
    );
    const service = await stage.start();
    const startedMs = Date.now();
    await stage.outcomesOf([record]);
    expect((api.callsOf(record.token_id)[0]?.wallMs ?? Number.NaN) - startedMs).toBeLessThan(tierMs["retry-600s"]);
    await service.stop();
  });
});

describe("a second fetcher", () => {
  it("takes over partitions in the middle of the work: every token ends, and few are called twice", async () => {
    api.otherwise({ delayMs: 100 });
    const records = Array.from({ length: 24 }, () => refreshOf(api, 25, { max_concurrency: 3 })).flat();
    const first = await stage.start();
    await stage.submit(records);
    await calledAtLeast(100);
    const second = await stage.start();
    await stage.outcomesOf(records);
    await stage.allCommitted();
    const counts = records.map(callCount);
    expect(Math.min(...counts)).toBe(1);
    expect(Math.max(...counts)).toBeLessThanOrEqual(2);
    // Of the partitions that moved, half of all: what was under way, and what had ended since the last commit. On a busy machine that
    // can be seconds of work; that nothing else was called again is what counts.
    expect(counts.filter((count) => count > 1).length).toBeLessThanOrEqual(records.length / 2);
    await Promise.all([first.stop(), second.stop()]);
    expect([...first.failures, ...second.failures]).toEqual([]);
  });
});
