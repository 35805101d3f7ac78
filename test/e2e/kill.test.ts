import { afterAll, beforeAll, expect, it } from "vitest";
import { serviceNames } from "../../deploy/development/service-process.ts";
import { Ledger } from "../support/ledger.ts";
import { TestSystem, tokenIdsFrom } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";

let system: TestSystem;
let ledger: Ledger;

beforeAll(async () => {
  const delays = "retry-2s=300,retry-10s=900,retry-60s=2000,retry-600s=4000";
  system = await TestSystem.start("kill", { delays });
  ledger = await Ledger.open(system.environment);
});

afterAll(async () => {
  await ledger?.close();
  await system?.close();
});

const tokenIds = tokenIdsFrom(1, 1000);

it.each(serviceNames)("kill -9 of %s in the middle of 1000 tokens changes no count, row or event", async (name) => {
  const unregistered = new Set(["17", "500", "983"]);
  const project = await system.createProject({ tokenIds: tokenIds.filter((tokenId) => !unregistered.has(tokenId)) });
  const failed = new Map([...unregistered].map((tokenId) => [tokenId, "token_not_found"]));
  project.api.otherwise({ delayMs: 30 });
  for (const tokenId of tokenIdsFrom(100, 20)) {
    project.api.script(tokenId, [{ status: 404 }]);
    failed.set(tokenId, "invalid_response_status_code");
  }
  for (const tokenId of tokenIdsFrom(300, 5)) project.api.script(tokenId, [{ status: 503 }, {}]);

  const refreshId = await system.refresh(project, tokenIds);
  await waitFor(
    "calls under way",
    () => project.api.calls.length,
    (count) => count >= 100,
    { everyMs: 1 },
  );
  await system.killAndRestart(name);
  await system.completed(project, refreshId, { withinMs: 180_000 });
  await ledger.check({ project, refreshId, tokenIds, failed, afterKill: true });
});

it("kill -9 of the splitter between the first and the last of ten refreshes loses none of them", async () => {
  const project = await system.createProject({ tokenIds });
  project.api.otherwise({ delayMs: 5 });
  const parts = Array.from({ length: 10 }, (_, part) => tokenIds.slice(part * 100, part * 100 + 100));
  const requests = parts.map((part) => system.refresh(project, part));
  await waitFor(
    "the first call",
    () => project.api.calls.length,
    (count) => count > 0,
    { everyMs: 1 },
  );
  await system.killAndRestart("splitter");
  for (const [part, request] of requests.entries()) {
    const refreshId = await request;
    await system.completed(project, refreshId, { withinMs: 180_000 });
    await ledger.check({ project, refreshId, tokenIds: parts[part] ?? [], afterKill: true });
  }
});

it.each(["splitter", "fetcher", "aggregator"] as const)(
  "a graceful stop of %s in the middle of 1000 tokens repeats no call and no event either",
  async (name) => {
    const project = await system.createProject({ tokenIds });
    project.api.otherwise({ delayMs: 30 });
    const refreshId = await system.refresh(project, tokenIds);
    await waitFor(
      "calls under way",
      () => project.api.calls.length,
      (count) => count >= 100,
      { everyMs: 1 },
    );
    expect(await system.stopAndRestart(name)).toEqual({ code: 0, signal: null });
    await system.completed(project, refreshId, { withinMs: 180_000 });
    await ledger.check({ project, refreshId, tokenIds });
    expect(project.api.calls).toHaveLength(tokenIds.length);
  },
);
