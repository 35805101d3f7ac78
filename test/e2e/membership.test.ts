import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ServiceName, type ServiceProcess, startService } from "../../deploy/development/service-process.ts";
import { Ledger } from "../support/ledger.ts";
import { TestSystem, tokenIdsFrom } from "../support/system.ts";
import { waitFor } from "../support/wait-for.ts";

let system: TestSystem;
let ledger: Ledger;
const extras = new Set<ServiceProcess>();

beforeAll(async () => {
  system = await TestSystem.start("membership");
  ledger = await Ledger.open(system.environment);
});

afterEach(async () => {
  await Promise.all([...extras].map((extra) => extra.stop()));
  extras.clear();
});

afterAll(async () => {
  await ledger?.close();
  await system?.close();
});

/** One more instance of a service, in its group. */
async function another(name: ServiceName): Promise<ServiceProcess> {
  const service = startService(name, { environment: system.environment.env });
  extras.add(service);
  await service.ready();
  return service;
}

const tokenIds = tokenIdsFrom(1, 1000);
const calledAtLeast = (calls: readonly unknown[], count: number) =>
  waitFor(
    `${count} calls`,
    () => calls.length,
    (length) => length >= count,
    { everyMs: 1 },
  );

it("a fetcher and an aggregator that stood still while others took over change nothing when they wake up", async () => {
  const project = await system.createProject({ maxConcurrency: 20 });
  project.api.otherwise({ delayMs: 50 });
  const refreshId = await system.refresh(project, tokenIds);
  // The aggregator waits for the first outcome: what answers its question is the first that it sees when it wakes up.
  await calledAtLeast(project.api.calls, 1);
  const [fetcher, aggregator] = [system.service("fetcher"), system.service("aggregator")];
  aggregator.kill("SIGSTOP");
  await calledAtLeast(project.api.calls, 200);
  fetcher.kill("SIGSTOP");
  await Promise.all([another("fetcher"), another("aggregator")]);
  await system.completed(project, refreshId);
  const callCount = project.api.calls.length;
  for (const sleeper of [fetcher, aggregator]) sleeper.kill("SIGCONT");
  await Promise.all([...extras].map((extra) => extra.stop()));
  await Promise.all([fetcher, aggregator].map((sleeper) => sleeper.ready()));
  const next = { project: await system.createProject(), tokenIds };
  const nextId = await system.refresh(next.project, tokenIds);
  await system.completed(next.project, nextId);
  await ledger.check({ ...next, refreshId: nextId, afterKill: true });
  await ledger.check({ project, refreshId, tokenIds, afterKill: true });
  expect(project.api.calls).toHaveLength(callCount);
  expect(aggregator.output.filter((line) => line.includes("partition.fenced"))).toEqual([]);
});
