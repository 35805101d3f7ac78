import type { Clock } from "../../../../services/common/clock.ts";
import type { DecodedRecord } from "../../../../services/common/kafka/contracts.ts";
import type { TopicDefinition } from "../../../../services/common/kafka/topics.ts";
import type { TokenRefresh } from "../../../../services/common/messages/records.ts";
import type { Conclusion } from "../../../../services/fetcher/core/attempt-rules.ts";
import type { Move } from "../../../../services/fetcher/core/overflow.ts";
import { Pipeline } from "../../../../services/fetcher/core/pipeline.ts";
import type { Delivery } from "../../../../services/fetcher/core/ports.ts";
import type { CallResult } from "../../../../services/fetcher/core/results.ts";
import type { Position } from "../../../../services/fetcher/core/work.ts";
import { rules, topics } from "./records.ts";
import { ScriptedScheduler, type ScriptedSchedulerOptions } from "./scripted-scheduler.ts";

export const main = topics.tokenRequested.name;
export const partition = { topic: main, partition: 3 };

/** What a test decides: how each call and each delivery ends, and when. */
export interface Open<T, R> {
  readonly what: T;
  end(result: R): Promise<void>;
}

function deferred<T, R>(list: Open<T, R>[], what: T): Promise<R> {
  return new Promise((resolve) => {
    list.push({
      what,
      end: async (result) => {
        resolve(result);
        // Until everything that follows from it has happened.
        for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      },
    });
  });
}

export interface MoveRequest {
  readonly refreshes: readonly TokenRefresh[];
  readonly tier: TopicDefinition;
  readonly wanted: () => boolean;
}

export interface WorldOptions extends ScriptedSchedulerOptions {
  /** Default 30,000. */
  readonly windowRecords?: number;
}

/** A pipeline in a world that a test scripts: nothing ends, no time passes, but when the test says so. */
export function world({ windowRecords = 30_000, ...options }: WorldOptions = {}) {
  const state = {
    nowMs: 1_790_000_000_000,
    monotonicMs: 1_000,
    mayAct: true,
    hasRoom: true,
    endpointOk: true,
    windowFull: false,
  };
  const calls: Open<TokenRefresh, CallResult | "abandoned">[] = [];
  const deliveries: Open<{ conclusion: Conclusion; wanted: () => boolean }, Delivery>[] = [];
  const moves: Open<MoveRequest, Delivery>[] = [];
  const moved: Move[] = [];
  const finished: Position[] = [];
  const pauses: string[] = [];
  const buried: string[] = [];
  const failures: unknown[] = [];
  const alarms: number[] = [];
  let duplicates = 0;
  const clock: Clock = { nowMs: () => state.nowMs, monotonicMs: () => state.monotonicMs };
  const scheduler = new ScriptedScheduler(options);
  const pipeline = new Pipeline({
    scheduler,
    rules,
    clock,
    ports: {
      call: (refresh) => deferred(calls, refresh),
      deliver: (conclusion, wanted) => deferred(deliveries, { conclusion, wanted }),
      move: (refreshes, tier, wanted) => deferred(moves, { refreshes, tier, wanted }),
      bury: async (_record, reason) => void buried.push(reason),
      finish: ({ topic, partition: number, offset }) => void finished.push({ topic, partition: number, offset }),
      mayAct: () => state.mayAct,
      windowRecords,
      windowFull: () => state.windowFull,
      pause: (paused) => void pauses.push(`pause ${paused.partition}/${paused.topic}`),
      resume: (resumed) => void pauses.push(`resume ${resumed.partition}/${resumed.topic}`),
      hasRoom: () => state.hasRoom,
      endpointOf: (url) =>
        state.endpointOk
          ? { ok: true, url, origin: new URL(url).origin }
          : { ok: false, detail: "blocked_address", block: "private_range" },
      wakeAfter: (delayMs) => void alarms.push(delayMs),
      report: {
        started: () => {},
        attempted: () => {},
        moved: (move) => void moved.push(move),
        duplicate: () => {
          duplicates += 1;
        },
      },
      fail: (cause) => void failures.push(cause),
    },
  });
  const pass = (ms: number): void => {
    state.monotonicMs += ms;
    pipeline.proceed();
  };
  return {
    pipeline,
    scheduler,
    state,
    calls,
    deliveries,
    moves,
    moved,
    finished,
    pauses,
    buried,
    failures,
    alarms,
    pass,
    duplicateCount: () => duplicates,
  };
}

export function recordOf(value: TokenRefresh, offset = 0, topic = main): DecodedRecord<TokenRefresh> {
  return { topic, partition: 3, offset, key: "7", timestampMs: 0, bytes: 100, value };
}

export const offsetsOf = (positions: readonly Position[]) => positions.map(({ offset }) => offset);
export const conclusionOf = (deliveries: readonly { what: { conclusion: Conclusion } }[], index = 0) =>
  deliveries[index]?.what.conclusion;
