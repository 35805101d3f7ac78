import { describe, expect, it } from "vitest";
import { AbandonedError, PoisonRecordError } from "../../../services/common/errors.ts";
import type { BatchContext, DecodedRecord } from "../../../services/common/kafka/contracts.ts";
import type { RefreshWatchdog } from "../../../services/common/messages/records.ts";
import type { Handover } from "../../../services/splitter/core/ports.ts";
import { createRefreshHandler, type RefreshEvent } from "../../../services/splitter/core/refresh-handler.ts";
import { createWatchdogHandler, type WatchdogEvent } from "../../../services/splitter/core/watchdog-handler.ts";
import { waitFor } from "../../support/wait-for.ts";
import { bitmapOf, refreshOf } from "./refreshes.ts";

const hourMs = 3_600_000;
const refresh = refreshOf();
const requestedAtMs = Math.floor(refresh.requested_at / 1000);

interface World {
  done: Uint8Array | undefined;
  registered: readonly string[];
  underWay: boolean;
  nowMs: number;
  /** What the next hand-over throws, once. */
  failure?: Error;
  /** What the rows, and the hand-over, wait for, and how they end. */
  rows?: Promise<void>;
  kafka?: Promise<void>;
  onAsked?: () => void;
}

/** Both handlers over ports that note what they were given. */
function handlersIn(world: World) {
  const handed: Handover[] = [];
  const steps: string[] = [];
  const refreshEvents: RefreshEvent[] = [];
  const watchdogEvents: WatchdogEvent[] = [];
  const ports = {
    readDone: async () => world.done,
    readRegistered: async () => new Set(world.registered),
    writeRefresh: async () => {
      await world.rows;
      steps.push("rows written");
    },
    isUnderWay: async () => {
      world.onAsked?.();
      return world.underWay;
    },
    handOver: async (handover: Handover) => {
      const { failure } = world;
      delete world.failure;
      if (failure !== undefined) throw failure;
      await world.kafka;
      steps.push("handed over");
      handed.push(handover);
    },
    nowMs: () => world.nowMs,
    retentionMicros: 90 * 24 * hourMs * 1000,
    delayMs: hourMs,
    madeChecks: new Set<string>(),
  };
  const onRefresh = createRefreshHandler({ ...ports, report: (event) => void refreshEvents.push(event) });
  const onCheck = createWatchdogHandler({ ...ports, report: (event) => void watchdogEvents.push(event) });
  return { onRefresh, onCheck, handed, steps, refreshEvents, watchdogEvents };
}

const calmWorld = (): World => ({ done: undefined, registered: ["5", "7"], underWay: false, nowMs: requestedAtMs + 50 });

function contextOf(signal = new AbortController().signal): BatchContext {
  return { topic: "t", partition: 0, signal, mayAct: () => true, highWatermark: 1 };
}

function recordOf<T>(value: T, timestampMs = requestedAtMs): DecodedRecord<T> {
  return { topic: "t", partition: 0, offset: 0, key: refresh.refresh_id, timestampMs, bytes: 100, value };
}

const checkOf = (check: number, emission = 1): RefreshWatchdog => ({ check, emission, refresh });

describe("a refresh", () => {
  it("is handed over with its first check", async () => {
    const { onRefresh, handed, refreshEvents } = handlersIn(calmWorld());
    await onRefresh([recordOf(refresh)], contextOf());
    expect(handed[0]?.requested.map(({ token_id }) => token_id)).toEqual(["5", "7"]);
    expect(handed[0]?.outcomes.map(({ token_id }) => token_id)).toEqual(["300"]);
    expect(handed[0]?.check).toEqual({ check: 1, emission: 1, refresh });
    expect(refreshEvents).toEqual([{ result: "split", refresh, requestedCount: 2, notFoundCount: 1 }]);
  });

  it("is handed over without waiting for its rows, and is done when it has them", async () => {
    const rows = Promise.withResolvers<void>();
    const { onRefresh, steps } = handlersIn({ ...calmWorld(), rows: rows.promise });
    const done = onRefresh([recordOf(refresh)], contextOf()).then(() => steps.push("done"));
    await waitFor(
      "the hand-over",
      () => [...steps],
      (seen) => seen.length > 0,
    );
    rows.resolve();
    await done;
    expect(steps).toEqual(["handed over", "rows written", "done"]);
  });

  it("fails without its rows, but not before its hand-over has ended: the next try would meet it", async () => {
    const kafka = Promise.withResolvers<void>();
    const rows = Promise.withResolvers<void>();
    const { onRefresh, steps } = handlersIn({ ...calmWorld(), rows: rows.promise, kafka: kafka.promise });
    const failed = expect(onRefresh([recordOf(refresh)], contextOf()).finally(() => steps.push("done"))).rejects.toThrow(
      "no node",
    );
    rows.reject(new Error("no node"));
    setImmediate(kafka.resolve);
    await failed;
    expect(steps).toEqual(["handed over", "done"]);
  });

  it("is not handed over again by the next try of its batch: only the rows are missing", async () => {
    const world: World = { ...calmWorld(), rows: Promise.reject(new Error("no node")) };
    const { onRefresh, handed, steps, refreshEvents } = handlersIn(world);
    const assignment = contextOf();
    await expect(onRefresh([recordOf(refresh)], assignment)).rejects.toThrow("no node");
    delete world.rows;
    await onRefresh([recordOf(refresh)], assignment);
    expect(handed).toHaveLength(1);
    expect(steps).toEqual(["handed over", "rows written"]);
    expect(refreshEvents.map(({ result }) => result)).toEqual(["split"]);
  });

  it("is handed over again when it comes after its batch was done, or under another assignment", async () => {
    const world: World = { ...calmWorld(), rows: Promise.reject(new Error("no node")) };
    const { onRefresh, handed } = handlersIn(world);
    await expect(onRefresh([recordOf(refresh)], contextOf())).rejects.toThrow("no node");
    delete world.rows;
    const another = contextOf();
    await onRefresh([recordOf(refresh)], another);
    await onRefresh([recordOf(refresh)], another);
    expect(handed).toHaveLength(3);
  });

  it("is handed over by the next try when only its rows were written", async () => {
    const { onRefresh, handed, steps } = handlersIn({ ...calmWorld(), failure: new Error("Kafka is away") });
    const assignment = contextOf();
    await expect(onRefresh([recordOf(refresh)], assignment)).rejects.toThrow("Kafka is away");
    await onRefresh([recordOf(refresh)], assignment);
    expect(handed).toHaveLength(1);
    expect(steps.filter((step) => step === "rows written")).toHaveLength(2);
  });

  it("with the policy open asks for every token", async () => {
    const { onRefresh, handed } = handlersIn({ ...calmWorld(), registered: [] });
    await onRefresh([recordOf(refreshOf({ token_policy: "open" }))], contextOf());
    expect(handed[0]?.requested).toHaveLength(3);
    expect(handed[0]?.outcomes).toHaveLength(0);
  });

  it("that is redelivered in the middle is asked only for what has no outcome", async () => {
    const { onRefresh, handed } = handlersIn({ ...calmWorld(), done: bitmapOf(3, [0, 1]) });
    await onRefresh([recordOf(refresh)], contextOf());
    expect(handed[0]?.requested.map(({ ordinal }) => ordinal)).toEqual([2]);
  });

  it("that is redelivered after its end starts nothing, no check either", async () => {
    const { onRefresh, handed, steps, refreshEvents } = handlersIn({ ...calmWorld(), done: bitmapOf(3, [0, 1, 2]) });
    await onRefresh([recordOf(refresh)], contextOf());
    expect(handed).toEqual([]);
    expect(steps).toEqual(["rows written"]);
    expect(refreshEvents[0]?.result).toBe("completed");
  });

  it("that is older than its rows live is not begun a second time", async () => {
    const { onRefresh, handed, steps, refreshEvents } = handlersIn({
      ...calmWorld(),
      nowMs: requestedAtMs + 90 * 24 * hourMs + 1,
    });
    await onRefresh([recordOf(refresh)], contextOf());
    expect([handed, steps]).toEqual([[], []]);
    expect(refreshEvents[0]?.result).toBe("expired");
  });

  it("past its deadline still goes the normal way: the fetcher closes it", async () => {
    const { onRefresh, handed } = handlersIn({ ...calmWorld(), nowMs: requestedAtMs + 49 * hourMs });
    await onRefresh([recordOf(refresh)], contextOf());
    expect(handed[0]?.requested).toHaveLength(2);
  });

  it("behind a lost partition is left uncommitted", async () => {
    const { onRefresh, handed } = handlersIn(calmWorld());
    await expect(onRefresh([recordOf(refresh)], contextOf(AbortSignal.abort()))).rejects.toThrow(AbandonedError);
    expect(handed).toEqual([]);
  });

  it("that makes no sense is poison, and nothing before it in the batch is split twice for it", async () => {
    const { onRefresh, handed } = handlersIn(calmWorld());
    const batch = [recordOf(refresh), recordOf(refreshOf({ token_ids: [] }))];
    await expect(onRefresh(batch, contextOf())).rejects.toThrow(PoisonRecordError);
    expect(handed).toEqual([]);
  });
});

describe("a check", () => {
  it("of a completed refresh ends the chain", async () => {
    const { onCheck, handed, watchdogEvents } = handlersIn({ ...calmWorld(), done: bitmapOf(3, [0, 1, 2]) });
    await onCheck([recordOf(checkOf(1))], contextOf());
    expect(handed).toEqual([]);
    expect(watchdogEvents[0]?.action).toBe("completed");
  });

  it("emits again what has no outcome and is nowhere, as the next emission", async () => {
    const { onCheck, handed } = handlersIn({ ...calmWorld(), done: bitmapOf(3, [2]) });
    await onCheck([recordOf(checkOf(1))], contextOf());
    expect(handed[0]?.requested.map(({ ordinal, emission, attempt }) => [ordinal, emission, attempt])).toEqual([[0, 2, 1]]);
    expect(handed[0]?.outcomes.map(({ ordinal, emission }) => [ordinal, emission])).toEqual([[1, 2]]);
    expect(handed[0]?.check).toEqual(checkOf(2, 2));
  });

  it("looks at the progress again after it has asked what is under way", async () => {
    const world = calmWorld();
    world.onAsked = () => {
      world.done = bitmapOf(3, [0, 1]);
    };
    const { onCheck, handed } = handlersIn(world);
    await onCheck([recordOf(checkOf(1))], contextOf());
    expect(handed[0]?.requested.map(({ ordinal }) => ordinal)).toEqual([2]);
  });

  it("only plans the next one while something is under way", async () => {
    const { onCheck, handed } = handlersIn({ ...calmWorld(), underWay: true });
    await onCheck([recordOf(checkOf(3, 2))], contextOf());
    expect(handed).toEqual([{ requested: [], outcomes: [], check: checkOf(4, 2) }]);
  });

  it("an hour after the deadline closes what is left, with the same bytes whenever it is made", async () => {
    const { onCheck, handed } = handlersIn({ ...calmWorld(), done: bitmapOf(3, [0]), underWay: true });
    const dueInTime = requestedAtMs + 48 * hourMs + 1;
    await onCheck([recordOf(checkOf(49, 3), dueInTime), recordOf(checkOf(50, 3), dueInTime + 5 * hourMs)], contextOf());
    expect(handed[0]?.outcomes.map(({ ordinal, error_detail }) => [ordinal, error_detail])).toEqual([
      [1, "deadline_exceeded"],
      [2, "deadline_exceeded"],
    ]);
    expect(handed[0]?.outcomes[0]?.created_at).toBe(refresh.deadline + hourMs * 1000);
    expect(handed[1]?.outcomes).toEqual(handed[0]?.outcomes);
    expect(handed[0]?.check).toEqual(checkOf(50, 3));
  });

  it("that comes twice is made once: a forked chain dies out", async () => {
    const { onCheck, handed, watchdogEvents } = handlersIn({ ...calmWorld(), underWay: true });
    await onCheck([recordOf(checkOf(1)), recordOf(checkOf(1)), recordOf(checkOf(2))], contextOf());
    expect(handed.map(({ check }) => check.check)).toEqual([2, 3]);
    expect(watchdogEvents.map(({ action }) => action)).toEqual(["under_way", "repeated", "under_way"]);
  });

  it("whose hand-over failed counts as not made", async () => {
    const { onCheck, handed } = handlersIn({ ...calmWorld(), underWay: true, failure: new Error("Kafka is away") });
    await expect(onCheck([recordOf(checkOf(1))], contextOf())).rejects.toThrow("Kafka is away");
    await onCheck([recordOf(checkOf(1))], contextOf());
    expect(handed.map(({ check }) => check.check)).toEqual([2]);
  });
});
