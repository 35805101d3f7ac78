import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ServiceProcess, startService } from "../../deploy/development/service-process.ts";
import type { DecodedRecord } from "../../services/common/kafka/contracts.ts";
import type { TokenOutcome } from "../../services/common/messages/records.ts";
import { waitFor } from "../support/wait-for.ts";
import { processOnce, type Reference } from "../unit/aggregator/reference.ts";
import { failure, refreshOf, Stage, success } from "./aggregator-stage.ts";

const seed = Number(process.env.TEST_SEED ?? 20_261_121);
const outcomesOfPartition = 1_500;
let stage: Stage;
const processes: ServiceProcess[] = [];

beforeAll(async () => {
  stage = await Stage.create("aggregator-process");
});
afterAll(async () => {
  await Promise.all(processes.map((service) => service.stop()));
  await stage?.close();
});

/** Refreshes of one collection that share its tokens, their outcomes interleaved, some more than once. */
function outcomesOf(collection: string): TokenOutcome[] {
  const content = fc.constantFrom("A", "B", "C").map((text) => success(`{"content":"${text}","filler":"${"x".repeat(500)}"}`));
  const end = fc.oneof({ weight: 9, arbitrary: content }, { weight: 1, arbitrary: fc.constant(failure("token_not_found")) });
  const ids = fc.uniqueArray(fc.nat({ max: 299 }).map(String), { minLength: 100, maxLength: 100 });
  const refresh = ids.chain((tokens) => fc.tuple(...tokens.map((id) => fc.tuple(fc.constant(id), end))));
  const refreshes = fc.sample(refresh, { numRuns: outcomesOfPartition / 100, seed: seed + Number(collection) });
  const all = refreshes.flatMap((tokens) => refreshOf(collection, ...tokens));
  const order = fc.array(fc.nat({ max: 400 }), { minLength: all.length, maxLength: all.length });
  const [late = []] = fc.sample(order, { numRuns: 1, seed });
  const shuffled = all.map((outcome, index) => ({ outcome, place: index + (late[index] ?? 0) }));
  const repeated = shuffled.filter((_, index) => index % 10 === 0).map(({ outcome, place }) => ({ outcome, place: place + 300 }));
  return [...shuffled, ...repeated].toSorted((a, b) => a.place - b.place).map(({ outcome }) => outcome);
}

async function start(): Promise<ServiceProcess> {
  const service = startService("aggregator", { environment: stage.environment.env });
  processes.push(service);
  await service.ready();
  return service;
}

/** Waits until the processes have published this many states more. */
function working(more: number): Promise<unknown> {
  const before = stage.states.records.length;
  return stage.states.until(`${more} more states`, (all) => all.length >= before + more, { everyMs: 2 });
}

async function expectReference(reference: Reference): Promise<void> {
  for (const [id, expected] of reference.completions) {
    const said = stage.completions.records.filter(({ key }) => key === id);
    expect(said[0]?.value).toEqual(expected);
    expect(new Set(said.map(({ bytes, headers }) => `${headers.ce_id} ${bytes.toString("hex")}`)).size).toBe(1);
    const row = await stage.progress(id);
    const { succeeded: succeeded_count, unchanged: unchanged_count, failed: failed_count } = expected;
    expect(row).toMatchObject({ succeeded_count, unchanged_count, failed_count });
    expect((await stage.errors(id)).map(({ ordinal }) => ordinal).toSorted()).toEqual(
      reference.errors
        .filter(({ refresh_id }) => refresh_id === id)
        .map(({ ordinal }) => ordinal)
        .toSorted(),
    );
  }
  const latest = new Map(stage.states.records.map(({ key, value }) => [key, value]));
  for (const [key, { metadata, version, refresh_id, refreshed_at }] of reference.tokens) {
    const [collection = "", id = ""] = key.split(":");
    const row = await stage.token(collection, id);
    expect(row).toMatchObject({ metadata, version: BigInt(version), refresh_id, refreshed_at: BigInt(refreshed_at) });
    expect(latest.get(key)).toMatchObject({ metadata, version });
  }
}

describe("processes that are killed and stopped under load", () => {
  it("leave the rows, counts and events of one pass over the log", async () => {
    const { partitions } = stage.environment.topics.tokenOutcome;
    const logs = Array.from({ length: partitions }, (_, partition) => outcomesOf(stage.collection(partition)));
    const records: DecodedRecord<TokenOutcome>[] = [];
    const produce = async (from: number, to: number) => {
      for (const log of logs) records.push(...(await stage.produce(log.slice(log.length * from, log.length * to))));
    };
    await produce(0, 0.5);

    const killed = await start();
    await working(100);
    killed.kill("SIGKILL");
    await killed.exited;

    const stopped = await start();
    await working(100);
    stopped.kill("SIGSTOP");
    await produce(0.5, 1);
    const owner = await start();
    await working(100);
    stopped.kill("SIGCONT");

    const references = [...Map.groupBy(records, ({ partition }) => partition).values()].map((log) => processOnce(log, 1));
    const completed = new Set(references.flatMap(({ completions }) => [...completions.keys()]));
    expect(completed.size).toBe((partitions * outcomesOfPartition) / 100);
    const all = () => new Set(stage.completions.records.map(({ key }) => key)).size === completed.size;
    await stage.completions.until("every completion", all);
    await waitFor(
      "both members are well",
      () => Promise.all([stopped.ready(), owner.ready()]),
      () => true,
    );
    await Promise.all([stage.states.caughtUp(), stage.completions.caughtUp()]);
    for (const reference of references) await expectReference(reference);
  });
});
