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

/** Nine records where seven may wait: three of them leave. */
function crowded() {
  const it = world({ windowRecords: 9, perQueue: 1 });
  it.pipeline.take(tokens(9));
  return it;
}

describe("a window", () => {
  it("with room for all that wait moves nothing and pauses nothing, whoever it belongs to", () => {
    const { pipeline, moves, pauses, pass } = world({ windowRecords: 100, perQueue: 1, msPerRecord: 60_000 });
    pipeline.take(tokens(80));
    pass(250);
    expect([...pauses, ...moves]).toEqual([]);
  });

  it("in which too much waits gives the newest to a tier as they are, and their partition is read on", async () => {
    const { moves, finished, pauses, pass, moved } = crowded();
    expect(allOrdinals(moves)).toEqual([6, 7, 8]);
    expect(moves[0]?.what.refreshes[0]).toEqual(tokenRefresh({ ordinal: 6, first_queued_at: 6 }));
    expect(pauses).toEqual([pauseOf("pause")]);
    pass(1);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
    expect(finished).toEqual([]);
    await moves[0]?.end("acknowledged");
    expect(offsetsOf(finished)).toEqual([6, 7, 8]);
    expect(moved).toMatchObject([{ cause: "full_window", works: [{}, {}, {}] }]);
  });

  it("takes from those who wait longest, and neither takes from the others nor makes their partitions wait", () => {
    const { pipeline, moves, pauses } = world({ windowRecords: 20, perQueue: 1 });
    pipeline.take(tokens(14, 0, { project_id: 1 }));
    pipeline.take(tokens(4, 100, { project_id: 2 }));
    expect(new Set(moves.flatMap(({ what }) => what.refreshes).map(({ project_id }) => project_id))).toEqual(new Set([1]));
    expect(pauses).toEqual([]);
  });

  it("that is full of bytes has less room", () => {
    const { pipeline, state, moves } = world({ windowRecords: 20, perQueue: 1 });
    pipeline.take(tokens(10));
    expect(moves).toEqual([]);
    state.windowFull = true;
    pipeline.take(tokens(1, 10));
    expect(allOrdinals(moves)).toEqual([8, 9, 10]);
  });

  it("keeps everything while there is no lease, and makes room when it is back", () => {
    const { pipeline, state, moves, pauses, pass } = world({ windowRecords: 9, perQueue: 1 });
    state.mayAct = false;
    pipeline.take(tokens(9));
    expect([...pauses, ...moves]).toEqual([]);
    state.mayAct = true;
    pass(250);
    expect(allOrdinals(moves)).toEqual([6, 7, 8]);
  });
});

describe("a queue of which records are away", () => {
  const [shortest] = topics.retryTiers;
  /** 1 a second: it keeps what that is in 20 s. */
  async function overflowed() {
    const it = world({ windowRecords: 100, perQueue: 1, msPerRecord: 1_000 });
    it.pipeline.take(tokens(90));
    expect(allOrdinals(it.moves)).toHaveLength(17);
    it.pass(1_000);
    return it;
  }

  it("gives away what comes beyond 20 s of work, at once and twice as many, in whatever topic it is", async () => {
    const { pipeline, moves } = await overflowed();
    pipeline.take(tokens(5, 100));
    expect(allOrdinals(moves.slice(1))).toEqual([68, 69, 70, 71, 72, 100, 101, 102, 103, 104]);
    pipeline.take(tokens(1, 200, {}, shortest?.name));
    expect(moves).toHaveLength(3);
  });

  it("is short enough when it has work for 20 s", async () => {
    const { pipeline, moves } = await overflowed();
    for (let offset = 100; offset < 200; offset += 10) pipeline.take(tokens(10, offset));
    const before = moves.length;
    pipeline.take(tokens(10, 200));
    expect(ordinalsOf(moves[before]?.what.refreshes)).toHaveLength(10);
  });

  it("keeps all that comes once they are back", async () => {
    const { pipeline, moves } = await overflowed();
    for (const [move] of [moves]) await move?.end("acknowledged");
    for (let call = 0; call < moves.length; call += 1) {
      const { refreshes = [], tier } = moves[call]?.what ?? {};
      pipeline.take(refreshes.map((refresh, index) => recordOf(refresh, 1_000 + index, tier?.name)));
    }
    const before = moves.length;
    pipeline.take(tokens(1, 300));
    expect(moves).toHaveLength(before);
  });

  it("whose host sleeps sends them to the tier that fits its sleep, and keeps none for it", async () => {
    const { pipeline, state, scheduler, moves } = await overflowed();
    scheduler.sleepsUntilMs = state.monotonicMs + 600_000;
    pipeline.take(tokens(5, 100));
    expect(moves.slice(1).map(({ what }) => what.tier.delayMs)).toEqual([600_000]);
  });
});

describe("a partition whose records were moved", () => {
  it("is read on at the pace at which they may be moved", () => {
    const { pipeline, pauses, moves, pass } = world({ windowRecords: 1_000, perQueue: 1, msPerRecord: 1 });
    pipeline.take(tokens(1_000));
    expect(pauses).toEqual([pauseOf("pause")]);
    // At 20,000 a second.
    expect(allOrdinals(moves)).toHaveLength(279);
    pass(13);
    expect(pauses).toEqual([pauseOf("pause")]);
    pass(1);
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("resume")]);
  });

  it("waits for its turn among others, the one that has waited longest first", () => {
    const { pipeline, pauses, pass } = world({ windowRecords: 10, perQueue: 1, msPerRecord: 60_000 });
    const [first, second] = topics.retryTiers.map(({ name }) => name);
    pipeline.take(tokens(9, 0));
    pipeline.take(tokens(2, 0, { ordinal: 20 }, first).slice(1));
    pipeline.take(tokens(2, 0, { ordinal: 30 }, second).slice(1));
    expect(pauses).toEqual([pauseOf("pause"), pauseOf("pause", first), pauseOf("pause", second)]);
    pass(2);
    expect(pauses.slice(3)).toEqual([pauseOf("resume")]);
    pass(6);
    expect(pauses.slice(4)).toEqual([pauseOf("resume", first)]);
  });
});

describe("a move", () => {
  it("does not make its record a known one: it is called when it comes back", async () => {
    const { pipeline, calls, moves, pass } = crowded();
    pass(250);
    await moves[0]?.end("acknowledged");
    for (let call = 0; call < 6; call += 1) await calls[call]?.end(success());
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
    const { pipeline, calls, deliveries, moves, finished, pass } = crowded();
    const tier = topics.retryTiers[0]?.name;
    pass(250);
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
    const { pipeline, calls, deliveries, moves, finished, pass } = crowded();
    pass(250);
    await moves[0]?.end("acknowledged");
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
    const { pipeline, state, pauses, alarms, pass } = world({ windowRecords: 9, perQueue: 1 });
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

describe("a record that holds the low-water mark back", () => {
  const slow = { project_id: 1 };
  const quick = { project_id: 2 };

  it("is moved after 30 s, once newer ones of its partition have finished, and the host keeps what it can start meanwhile", async () => {
    const { pipeline, calls, deliveries, moves, moved, finished, pass } = world({ perQueue: 1, msPerRecord: 1_000 });
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
    const { pipeline, moves, pass } = world({ perQueue: 1 });
    pipeline.take(tokens(4, 0, slow));
    for (let round = 0; round < 100; round += 1) pass(2_000);
    expect(moves).toEqual([]);
  });

  it("is moved after 2 s when a crash would repeat 1,600 calls, but for those that start before they could be back", async () => {
    const { pipeline, calls, deliveries, moves, pass } = world({ perQueue: 1, msPerRecord: 1_000 });
    pipeline.take(tokens(8, 0, slow));
    pipeline.take(tokens(1, 1_700, quick));
    await calls[1]?.end(success());
    await deliveries[0]?.end("acknowledged");
    pass(1_900);
    expect(moves).toEqual([]);
    pass(2_000);
    expect(allOrdinals(moves)).toEqual([3, 4, 5, 6, 7]);
  });
});
