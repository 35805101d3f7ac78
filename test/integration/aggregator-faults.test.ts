import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Aggregator } from "../../services/aggregator/core/aggregator.ts";
import { AbandonedError } from "../../services/common/errors.ts";
import type { DecodedRecord } from "../../services/common/kafka/contracts.ts";
import type { TokenOutcome } from "../../services/common/messages/records.ts";
import { waitFor } from "../support/wait-for.ts";
import { failure, hashOf, refreshOf, Stage, success } from "./aggregator-stage.ts";

const base = 2 ** 40;
let stage: Stage;

beforeAll(async () => {
  stage = await Stage.create("aggregator-faults");
});
afterEach(() => stage.stopServices());
afterAll(() => stage?.close());

class Crash extends Error {}
const crash = () => Promise.reject(new Crash());

const diesBefore: Readonly<Record<string, (stage: Stage) => Aggregator>> = {
  "its token rows": (on) => on.instance(({ tokens }) => ({ tokens: { ...tokens, write: crash } })),
  "its progress": (on) => on.instance(({ refreshes }) => ({ refreshes: { ...refreshes, write: crash } })),
  "its completion": (on) => on.instance(({ publisher }) => ({ publisher: { ...publisher, publishCompletions: crash } })),
  "its commit": (on) => on.instance(),
};

describe("an instance that dies in the middle of a batch", () => {
  it.each(Object.keys(diesBefore))("before %s: its successor ends at the same rows, counts and events", async (point) => {
    const collection = stage.collection();
    const before = refreshOf(collection, ["1", success("A")], ["2", success("A")]);
    await stage.start();
    await stage.produce(before);
    await stage.completed(before);
    await stage.stopServices();

    const outcomes = refreshOf(collection, ["1", success("B")], ["2", success("A")], ["3", failure("token_not_found")]);
    const records = await stage.produce(outcomes);
    const dying = diesBefore[point]?.(stage).handle(records, stage.context(records)) ?? Promise.reject();
    await dying.catch((error) => expect(error).toBeInstanceOf(Crash));

    await stage.start();
    const after = refreshOf(collection, ["9", success("end")]);
    await stage.produce(after);
    await stage.completed(after);
    const completion = await stage.completed(outcomes);
    expect(completion).toMatchObject({ total: 3, succeeded: 2, unchanged: 1, failed: 1 });
    const said = stage.completions.records.filter(({ key }) => key === completion.refresh_id);
    expect(new Set(said.map(({ bytes }) => bytes.toString("hex"))).size).toBe(1);
    expect(new Set(said.map(({ headers }) => headers.ce_id)).size).toBe(1);
    const version = base + (records[0]?.offset ?? 0);
    expect(await stage.latest(collection, "1", version)).toMatchObject({ metadata: "B", version });
    const contents = stage.published(collection, "1").map((state) => `${state.version} ${state.metadata}`);
    expect(new Set(contents).size).toBe(2);
    expect(await stage.token(collection, "1")).toMatchObject({
      metadata: "B",
      previous_hash: hashOf("A"),
      version: BigInt(version),
    });
    expect(await stage.progress(completion.refresh_id)).toMatchObject({
      succeeded_count: 2,
      unchanged_count: 1,
      failed_count: 1,
    });
    expect(await stage.errors(completion.refresh_id)).toHaveLength(1);
  });
});

describe("an instance that wakes up after it lost its partition", () => {
  /** An instance that stops short of its rows, has been replaced, and goes on. */
  async function sleeper(records: readonly DecodedRecord<TokenOutcome>[]) {
    let wake = () => {};
    const sleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let isOwner = true;
    const asleep = Promise.withResolvers<void>();
    const instance = stage.instance(({ tokens }) => ({
      tokens: {
        ...tokens,
        write: async (...given) => {
          asleep.resolve();
          await sleep;
          return tokens.write(...given);
        },
      },
    }));
    const handled = instance.handle(
      records,
      stage.context(records, () => isOwner),
    );
    await asleep.promise;
    isOwner = false;
    return { wake, ended: handled.catch((error: unknown) => error) };
  }

  it("cannot put its older rows and counts over newer ones, nor announce anything", async () => {
    const collection = stage.collection();
    const one = refreshOf(collection, ["1", success("A")], ["2", failure("unable_to_retrieve_metadata")]);
    const two = refreshOf(collection, ["1", success("B")]);
    const [first, second] = await stage.produce(one);
    const old = await sleeper(first === undefined ? [] : [first]);
    await stage.produce(two);
    await stage.start();
    await stage.completed(two);
    const completion = await stage.completed(one);
    old.wake();
    expect(await old.ended).toBeUndefined();
    expect(await stage.token(collection, "1")).toMatchObject({ metadata: "B", previous_hash: hashOf("A") });
    expect(await stage.progress(completion.refresh_id)).toMatchObject({
      succeeded_count: 1,
      failed_count: 1,
      completed_version: BigInt(base + (second?.offset ?? 0)),
    });
  });

  it("leaves the completion of its refresh to the owner", async () => {
    const collection = stage.collection();
    const outcomes = refreshOf(collection, ["1", success("A")]);
    const records = await stage.produce(outcomes);
    const old = await sleeper(records);
    old.wake();
    expect(await old.ended).toBeInstanceOf(AbandonedError);
    await stage.start();
    expect(await stage.completed(outcomes)).toMatchObject({ succeeded: 1, unchanged: 0 });
    expect(stage.completions.records.filter(({ key }) => key === outcomes[0]?.refresh_id)).toHaveLength(1);
  });
});

describe("members that come and go", () => {
  it("forget what they knew of a partition: what another member wrote meanwhile is seen", async () => {
    const { partitions } = stage.environment.topics.tokenOutcome;
    const collections = Array.from({ length: partitions }, (_, partition) => stage.collection(partition));
    const refreshAll = async (content: string) => {
      const refreshes = collections.map((collection) => refreshOf(collection, ["1", success(content)]));
      await stage.produce(refreshes.flat());
      return Promise.all(refreshes.map((outcomes) => stage.completed(outcomes)));
    };
    const assignments = (logs: readonly Readonly<Record<string, unknown>>[]) =>
      logs.filter(({ event }) => event === "consumer.assigned").length;

    const staying = await stage.start();
    await refreshAll("A");
    const passing = await stage.start();
    await waitFor(
      "both have partitions",
      () => assignments(passing.logs),
      (count) => count > 0,
    );
    await refreshAll("B");
    await waitFor(
      "its share of them",
      async () => processedBy(await passing.metrics.text()),
      (count) => count > 0,
    );
    await passing.stop();
    const before = collections.map((collection) => stage.published(collection, "1").length);
    const changedBack = await refreshAll("A");
    expect(changedBack.map(({ unchanged }) => unchanged)).toEqual(collections.map(() => 0));
    await stage.states.until("every token once more", () =>
      collections.every((collection, index) => stage.published(collection, "1").length > (before[index] ?? 0)),
    );
    for (const collection of collections) expect(stage.published(collection, "1").at(-1)).toMatchObject({ metadata: "A" });
    expect(staying.failures).toEqual([]);
  });
});

function processedBy({ body }: { body: string }): number {
  return Number(/^token_state_published_total\S* (\d+)/m.exec(body)?.[1]);
}
