import { describe, expect, it } from "vitest";
import type { TokenRefresh } from "../../../../services/common/messages/records.ts";
import { main, offsetsOf, partition, recordOf, world } from "./pipeline-world.ts";
import { success, tokenRefresh, topics } from "./records.ts";

const pauseOf = (what: "pause" | "resume", topic = main) => `${what} 3/${topic}`;

/** Tokens of one queue, oldest first, from this offset on. */
function tokens(count: number, from = 0, changes: Partial<TokenRefresh> = {}, topic = main) {
  return Array.from({ length: count }, (_, index) =>
    recordOf(tokenRefresh({ ordinal: from + index, first_queued_at: from + index, ...changes }), from + index, topic),
  );
}

const ordinalsOf = (refreshes: readonly TokenRefresh[] = []) => refreshes.map(({ ordinal }) => ordinal);
const allOrdinals = (moves: readonly { what: { refreshes: readonly TokenRefresh[] } }[]) =>
  moves.flatMap(({ what }) => ordinalsOf(what.refreshes)).sort((a, b) => a - b);

/** One call under way, five records kept, and four too many. */
function crowded() {
  const it = world({ kept: 5, perQueue: 1 });
  it.scheduler.sleepsUntilMs = 0;
  it.state.unread = () => true;
  // One starts at once: what is counted as too many is what waits when the records have come.
  it.pipeline.take(tokens(9));
  return it;
}

describe("a queue with more than it keeps", () => {
  it("pauses its partition for 250 ms, then its newest records go to a tier as they are, and the partition goes on", async () => {
    const { moves, finished, pauses, pass, moved } = crowded();
    expect(pauses).toEqual([pauseOf("pause")]);
    pass(249);
    expect(moves).toEqual([]);
    pass(1);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
    expect(allOrdinals(moves)).toEqual([6, 7, 8]);
    expect(moves[0]?.what.refreshes[0]).toEqual(tokenRefresh({ ordinal: 6, first_queued_at: 6 }));
    expect(finished).toEqual([]);
    await moves[0]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([6, 7, 8]);
    expect(moved).toMatchObject([{ cause: "surplus", works: [{}, {}, {}] }]);
  });

  it("moves nothing when it has caught up meanwhile", async () => {
    const { calls, moves, pauses, pass } = crowded();
    for (let call = 0; call < 3; call += 1) await calls[call]?.end(success());
    pass(250);
    expect(moves).toEqual([]);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
  });

  it("moves nothing when nothing is behind it any more", () => {
    const { state, moves, pauses, pass } = crowded();
    state.unread = () => false;
    pass(250);
    expect(moves).toEqual([]);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
  });

  it("may use the whole window when nothing is behind it", () => {
    const { pipeline, moves, pauses, pass } = world({ kept: 5, perQueue: 1 });
    pipeline.take(tokens(500));
    pass(250);
    expect([...pauses, ...moves]).toEqual([]);
  });

  it("that overflowed just now overflows at once, without another pause, and pauses again after a quiet time", () => {
    const { pipeline, moves, pauses, pass } = crowded();
    pass(250);
    pipeline.take(tokens(4, 100));
    expect(allOrdinals(moves)).toEqual([6, 7, 8, 100, 101, 102, 103]);
    pass(2_000);
    pipeline.take(tokens(4, 200));
    expect(pauses.filter((line) => line === pauseOf("pause"))).toHaveLength(2);
  });

  it("moves nothing without the lease, and does not stay paused for it", () => {
    const { state, moves, pauses, pass } = crowded();
    state.mayAct = false;
    pass(250);
    expect(moves).toEqual([]);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
  });

  it("overflows in a delay tier by the same rule", () => {
    const { pipeline, state, moves, pauses, pass } = world({ kept: 5, perQueue: 1 });
    const [tier] = topics.retryTiers;
    state.unread = ({ topic }) => topic === tier?.name;
    pipeline.take(tokens(9, 0, {}, tier?.name));
    expect(pauses).toEqual([pauseOf("pause", tier?.name)]);
    pass(250);
    expect(allOrdinals(moves)).toEqual([6, 7, 8]);
  });
});

describe("a move", () => {
  it("does not make its record a known one: it is called when it comes back", async () => {
    const { pipeline, state, calls, moves, pass } = crowded();
    pass(250);
    await moves[0]?.end("acknowledged");
    for (let call = 0; call < 6; call += 1) await calls[call]?.end(success());
    state.unread = () => false;
    pipeline.take(tokens(1, 8, {}, topics.retryTiers[1]?.name));
    expect(ordinalsOf(calls.map(({ what }) => what)).slice(-1)).toEqual([8]);
  });

  it("of a record that is read again meanwhile finishes both its places, and its return is the one that is called", async () => {
    const { pipeline, calls, moves, finished, pass, duplicateCount } = crowded();
    pass(250);
    pipeline.take([recordOf(tokenRefresh({ ordinal: 8, first_queued_at: 8 }), 8)]);
    await moves[0]?.end("acknowledged");
    expect(duplicateCount()).toBe(1);
    expect(offsetsOf(finished).filter((offset) => offset === 8)).toHaveLength(2);
    expect(calls.map(({ what }) => what.ordinal)).toEqual([0]);
  });

  it("that is acknowledged so late that its record is back already does not lose it", async () => {
    const { pipeline, state, calls, deliveries, moves, finished, pass } = crowded();
    const tier = topics.retryTiers[0]?.name;
    pass(250);
    state.unread = () => false;
    pipeline.take([recordOf(tokenRefresh({ ordinal: 8, first_queued_at: 8 }), 77, tier)]);
    await moves[0]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([6, 7, 8]);
    for (let call = 0; call < 7; call += 1) {
      await calls[call]?.end(success());
      await deliveries[call]?.end("acknowledged");
    }
    expect(ordinalsOf(calls.map(({ what }) => what))).toEqual([0, 1, 2, 3, 4, 5, 8]);
    expect(finished).toContainEqual({ topic: tier, partition: 3, offset: 77 });
  });

  it("whose record is read again afterwards, and comes back too, is one call", async () => {
    const { pipeline, state, calls, deliveries, moves, finished, pass } = crowded();
    pass(250);
    await moves[0]?.end("acknowledged");
    state.unread = () => false;
    finished.splice(0);
    pipeline.lost([partition]);
    await calls[0]?.end(success());
    await deliveries[0]?.end("abandoned");
    pipeline.take(tokens(1, 8));
    pipeline.take([recordOf(tokenRefresh({ ordinal: 8, first_queued_at: 8 }), 77, topics.retryTiers[0]?.name)]);
    await calls[1]?.end(success());
    await deliveries[1]?.end("acknowledged");
    expect(finished).toMatchObject([
      { topic: main, offset: 8 },
      { topic: topics.retryTiers[0]?.name, offset: 77 },
    ]);
    expect(calls).toHaveLength(2);
  });

  it("that was given up leaves its records where they were", async () => {
    const { state, calls, moves, finished, pass, scheduler } = crowded();
    pass(250);
    state.mayAct = false;
    expect(moves[0]?.what.wanted()).toBe(false);
    await moves[0]?.end("abandoned");
    expect(finished).toEqual([]);
    expect(scheduler.waiting).toBe(8);
    state.mayAct = true;
    for (let call = 0; call < 9; call += 1) await calls[call]?.end(success());
    expect(ordinalsOf(calls.map(({ what }) => what))).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it("is not wanted any more when its partition is lost, and finishes nothing when it was made all the same", async () => {
    const { pipeline, moves, finished, pass } = crowded();
    pass(250);
    pipeline.lost([partition]);
    expect(moves[0]?.what.wanted()).toBe(false);
    await moves[0]?.end("acknowledged");
    expect(finished).toEqual([]);
  });

  it("is not wanted any more when the pipeline stops", async () => {
    const { pipeline, moves, pauses, pass, calls, deliveries } = crowded();
    pass(250);
    const stopping = pipeline.stop();
    expect(moves[0]?.what.wanted()).toBe(false);
    await moves[0]?.end("abandoned");
    await calls[0]?.end(success());
    await deliveries[0]?.end("acknowledged");
    await stopping;
    expect(pauses.at(-1)).toBe(pauseOf("resume"));
  });
});

describe("a paused partition", () => {
  it("that is lost is not left paused", () => {
    const { pipeline, pauses, pass } = crowded();
    pipeline.lost([partition]);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
    pass(250);
    expect(pauses).toHaveLength(2);
  });

  it("goes on in time when there is no room for a single call, and nothing else ever rings", () => {
    const { pipeline, state, pauses, alarms, pass } = world({ kept: 5, perQueue: 1 });
    state.unread = () => true;
    state.hasRoom = false;
    pipeline.take(tokens(9));
    expect(pauses).toEqual([pauseOf("pause")]);
    expect(Math.min(...alarms)).toBeLessThanOrEqual(250);
    pass(250);
    expect(pauses.at(-1)).toBe(pauseOf("resume"));
  });

  it("goes on when the pipeline stops", () => {
    const { pipeline, pauses } = crowded();
    void pipeline.stop();
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
  });
});

describe("a full window", () => {
  it("makes the surplus of every queue leave, whatever is known to be behind, and asks again while it is full", () => {
    const { pipeline, state, moves, pass } = world({ kept: 5, perQueue: 1 });
    pipeline.take(tokens(21, 0, { project_id: 1 }));
    state.windowFull = true;
    pipeline.take(tokens(5, 100, { project_id: 2 }));
    expect(moves).toEqual([]);
    pass(250);
    // Half of 20 + 4: all of it is to be had from the first queue.
    expect(allOrdinals(moves)).toEqual([9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);
    pass(1_000);
    expect(allOrdinals(moves.slice(1))).toEqual([6, 7, 8]);
  });

  it("makes those leave that wait longest when no queue has a surplus", () => {
    const { pipeline, state, moves, pass } = world({ kept: 1_000, perQueue: 1, msPerRecord: 500 });
    state.windowFull = true;
    pipeline.take(tokens(9, 0, { project_id: 1 }));
    pipeline.take(tokens(3, 100, { project_id: 2 }));
    pass(250);
    // Two seconds of work are four records.
    expect(allOrdinals(moves)).toEqual([5, 6, 7, 8]);
  });
});

describe("a record that holds the low-water mark back", () => {
  const slow = { project_id: 1 };
  const quick = { project_id: 2 };

  it("is moved after 30 s, once newer ones of its partition have finished, and the host keeps what it can start meanwhile", async () => {
    const { pipeline, calls, deliveries, moves, moved, finished, pass } = world({ perQueue: 1, kept: 1_000, msPerRecord: 1_000 });
    pipeline.take(tokens(4, 0, slow));
    pipeline.take(tokens(1, 50, quick));
    await calls[1]?.end(success());
    await deliveries[0]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([50]);
    pass(29_000);
    expect(moves).toEqual([]);
    pass(2_000);
    expect(allOrdinals(moves)).toEqual([1, 2, 3]);
    await moves[0]?.end("acknowledged");
    expect(moved).toMatchObject([{ cause: "held_back" }]);
    expect(offsetsOf(finished)).toEqual([50, 1, 2, 3]);
  });

  it("is left alone as long as nothing newer has finished: nothing would be repeated", () => {
    const { pipeline, moves, pass } = world({ perQueue: 1, kept: 1_000 });
    pipeline.take(tokens(4, 0, slow));
    for (let round = 0; round < 100; round += 1) pass(2_000);
    expect(moves).toEqual([]);
  });

  it("is moved after 2 s when a crash would repeat 2,500 calls, but for those that start before they could be back", async () => {
    const { pipeline, calls, deliveries, moves, pass } = world({ perQueue: 1, kept: 1_000, msPerRecord: 1_000 });
    pipeline.take(tokens(8, 0, slow));
    pipeline.take(tokens(1, 2_600, quick));
    await calls[1]?.end(success());
    await deliveries[0]?.end("acknowledged");
    pass(1_900);
    expect(moves).toEqual([]);
    pass(2_000);
    expect(allOrdinals(moves)).toEqual([3, 4, 5, 6, 7]);
  });
});
