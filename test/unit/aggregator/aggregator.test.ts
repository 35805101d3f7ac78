import { describe, expect, it, vi } from "vitest";
import { Aggregator } from "../../../services/aggregator/core/aggregator.ts";
import { FencedPartitionError } from "../../../services/aggregator/core/fence.ts";
import { AbandonedError, PoisonRecordError } from "../../../services/common/errors.ts";
import type { BatchContext } from "../../../services/common/kafka/contracts.ts";
import { collection, failure, outcomeRecord, refreshId, success, topic } from "./outcomes.ts";
import { portsInto, World } from "./world.ts";

const immediately = async () => {};

function setUp(world = new World()) {
  const ports = portsInto(world, immediately);
  const fenced = vi.fn();
  const reads = { refreshes: vi.spyOn(ports.refreshes, "load") };
  const caches = { progress: new Map() };
  const aggregator = new Aggregator({ generation: 1, ...ports, ...caches, telemetry: { ...ports.telemetry, fenced } });
  return { world, aggregator, fenced, reads, ports };
}

function context(change: Partial<BatchContext> = {}): BatchContext {
  return { topic, partition: 0, signal: new AbortController().signal, mayAct: () => true, highWatermark: 1_000, ...change };
}

const other = { refresh_id: refreshId(2) };

describe("ownership", () => {
  it("starts nothing without the lease, not even what Cassandra would fence", async () => {
    const { world, aggregator } = setUp();
    const handled = aggregator.handle([outcomeRecord(1, failure())], context({ mayAct: () => false }));
    await expect(handled).rejects.toBeInstanceOf(AbandonedError);
    expect(world.progress(refreshId(1))).toBeUndefined();
  });

  it("starts nothing once the partition is lost", async () => {
    const { world, aggregator } = setUp();
    const handled = aggregator.handle([outcomeRecord(1)], context({ signal: AbortSignal.abort() }));
    await expect(handled).rejects.toBeInstanceOf(AbandonedError);
    expect(world.states).toEqual([]);
  });

  it("reads progress that it has read before from memory, until the next assignment: another member may have written", async () => {
    const { aggregator, reads, world } = setUp();
    const place = { total: 3 };
    await aggregator.handle([outcomeRecord(1, { ...place, ordinal: 0, ...success("A") })], context());
    await aggregator.handle([outcomeRecord(2, { ...place, ordinal: 1, ...success("B") })], context());
    expect(reads.refreshes).toHaveBeenCalledTimes(1);
    await setUp(world).aggregator.handle([outcomeRecord(3, { ...other, ...success("C") })], context());
    aggregator.forget();
    await aggregator.handle([outcomeRecord(4, { ...place, ordinal: 2, ...success("C") })], context());
    expect(world.progress(refreshId(1))).toMatchObject({ succeededCount: 3, unchangedCount: 1 });
  });

  it("reads a token's head anew for every batch: a former owner may have counted an outcome of it", async () => {
    const world = new World();
    const { aggregator } = setUp(world);
    const third = { refresh_id: refreshId(3) };
    await aggregator.handle([outcomeRecord(1, success("A"))], context());
    const between = outcomeRecord(2, { ...other, ...success("B") });
    await setUp(world).aggregator.handle([between], context());
    await aggregator.handle([between, outcomeRecord(3, { ...third, ...success("A") })], context());
    expect(world.token(`${collection}:1`)).toMatchObject({ metadata: "A", refresh_id: refreshId(3) });
    expect(world.latestStates.get(`${collection}:1`)).toMatchObject({ metadata: "A" });
    expect(world.progress(refreshId(3))).toMatchObject({ unchangedCount: 0 });
  });

  it("reads progress before heads: what a former owner counts in between is then in the head", async () => {
    const { world, aggregator, reads } = setUp();
    const counted = outcomeRecord(1, success("A"));
    const load = portsInto(world, immediately).refreshes.load;
    reads.refreshes.mockImplementationOnce(async (ids) => {
      await setUp(world).aggregator.handle([counted], context());
      return load(ids);
    });
    await aggregator.handle([counted, outcomeRecord(2, { ...other, ...success("A") })], context());
    expect(world.progress(refreshId(2))).toMatchObject({ unchangedCount: 1 });
    expect(world.states).toHaveLength(1);
  });

  it("drops what it had in memory of a batch that did not finish", async () => {
    const { aggregator, reads, ports } = setUp();
    await aggregator.handle([outcomeRecord(1, { total: 2 })], context());
    vi.spyOn(ports.refreshes, "write").mockRejectedValueOnce(new Error("lost"));
    const next = [outcomeRecord(2, { total: 2, ordinal: 1, ...success("B") })];
    await expect(aggregator.handle(next, context())).rejects.toThrow("lost");
    await aggregator.handle(next, context());
    expect(reads.refreshes).toHaveBeenCalledTimes(2);
  });
});

describe("poison", () => {
  it("has no effect at all in a batch with a record that cannot be counted: the batch is cut down to that record first", async () => {
    const { world, aggregator } = setUp();
    const batch = [outcomeRecord(1, { total: 2 }), outcomeRecord(2, { total: 2, ordinal: 2 })];
    await expect(aggregator.handle(batch, context())).rejects.toBeInstanceOf(PoisonRecordError);
    const contradicting = [outcomeRecord(1, { total: 2 }), outcomeRecord(2, { total: 3, ordinal: 1 })];
    await expect(aggregator.handle(contradicting, context())).rejects.toBeInstanceOf(PoisonRecordError);
    expect(world.states).toEqual([]);
  });
});

describe("the fence around a topic that was re-created without a new generation", () => {
  async function writtenFromAnotherLog() {
    const { world, aggregator } = setUp();
    await aggregator.handle([outcomeRecord(500, success("A"))], context({ highWatermark: 501 }));
    return world;
  }

  it.each([
    ["behind the partition's end", outcomeRecord(3, { ...other, ...success("B") }), 500],
    ["at a record that has another content", outcomeRecord(500, { ...other, ...success("B") }), 900],
  ])("holds the partition when a stored version lies %s", async (_, record, highWatermark) => {
    const { world, aggregator, fenced } = setUp(await writtenFromAnotherLog());
    const handle = () => aggregator.handle([record], context({ highWatermark }));
    await expect(handle()).rejects.toBeInstanceOf(FencedPartitionError);
    await expect(handle()).rejects.toBeInstanceOf(FencedPartitionError);
    expect(fenced).toHaveBeenCalledTimes(1);
    expect(aggregator.health()).toContain(`${topic}/0`);
    expect(aggregator.fencedCount).toBe(1);
    expect(world.states).toHaveLength(1);
    expect(world.progress(refreshId(2))).toBeUndefined();
  });

  it("holds the partition for a refresh whose progress would lose what it counts: failures touch no token", async () => {
    const { world, aggregator } = setUp();
    const half = { total: 2, ...failure() };
    await aggregator.handle([outcomeRecord(500, { ...half, ordinal: 0 })], context());
    const other = setUp(world).aggregator;
    const lacking = [outcomeRecord(3, { ...half, ordinal: 1 })];
    await expect(other.handle(lacking, context({ highWatermark: 4 }))).rejects.toBeInstanceOf(FencedPartitionError);
    await expect(other.handle(lacking, context({ highWatermark: 900 }))).rejects.toBeInstanceOf(FencedPartitionError);
    expect(world.progress(refreshId(1))).toMatchObject({ failedCount: 1 });
  });

  it("is not put up by a former owner that wakes up and finds what the next one has written behind the end it knew", async () => {
    const { aggregator, fenced } = setUp(await writtenFromAnotherLog());
    const late = aggregator.handle(
      [outcomeRecord(3, { ...other, ...success("B") })],
      context({ highWatermark: 4, mayAct: () => false }),
    );
    await expect(late).rejects.toBeInstanceOf(AbandonedError);
    expect(fenced).not.toHaveBeenCalled();
    expect(aggregator.health()).toBeUndefined();
  });

  it("lets other partitions pass, and the same one when its end is seen farther on", async () => {
    const { aggregator, world } = setUp(await writtenFromAnotherLog());
    const record = outcomeRecord(3, { ...other, ...failure(), token_id: "2" });
    const touching = outcomeRecord(501, { ...other, total: 2, ordinal: 1, ...success("B") });
    await expect(aggregator.handle([touching], context({ highWatermark: 500 }))).rejects.toThrow(FencedPartitionError);
    const elsewhere = { ...record, key: collection, partition: 1, value: { ...record.value, total: 2 } };
    await aggregator.handle([elsewhere], context({ partition: 1 }));
    expect(aggregator.health()).toContain(`${topic}/0`);
    await aggregator.handle([touching], context({ highWatermark: 502 }));
    expect(aggregator.health()).toBeUndefined();
    expect(world.latestStates.get(`${collection}:1`)).toMatchObject({ metadata: "B" });
  });
});
