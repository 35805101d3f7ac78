import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Heartbeats } from "../../../../../services/common/kafka/consume/heartbeats.ts";

const timing = { sessionTimeoutMs: 30_000, requestTimeoutMs: 8_000 };
const termMs = 22_000;

function start() {
  const time = { nowMs: 1_000_000, monotonicMs: 500 };
  const heartbeats = new Heartbeats(timing, { nowMs: () => time.nowMs, monotonicMs: () => time.monotonicMs });
  const pass = (ms: number): void => {
    time.nowMs += ms;
    time.monotonicMs += ms;
  };
  const valid = (): boolean => heartbeats.lease.valid(time.monotonicMs);
  return { heartbeats, time, pass, valid };
}

describe("the lease", () => {
  test("is not there before the first good answer, nor after an answer that was not a good one", () => {
    const { heartbeats, time, valid } = start();
    expect(valid()).toBe(false);
    heartbeats.noteAnswer({ apiName: "Heartbeat", sentAt: time.nowMs });
    expect(valid()).toBe(false);
    heartbeats.noteGood();
    expect(valid()).toBe(true);
  });

  test("is over before the session is: a member that lost its lease is still in its group for a while", () => {
    const { heartbeats, time, pass, valid } = start();
    expect(heartbeats.lapsed).toBe(true);
    heartbeats.noteAnswer({ apiName: "SyncGroup", sentAt: time.nowMs });
    heartbeats.noteGood();
    pass(timing.sessionTimeoutMs);
    expect([valid(), heartbeats.lapsed]).toEqual([false, false]);
    pass(1);
    expect(heartbeats.lapsed).toBe(true);
  });

  test("ends when the last good heartbeat is as old as the session less one request", () => {
    const { heartbeats, time, pass, valid } = start();
    heartbeats.noteAnswer({ apiName: "SyncGroup", sentAt: time.nowMs });
    heartbeats.noteGood();
    pass(termMs - 1);
    expect(valid()).toBe(true);
    pass(1);
    expect(valid()).toBe(false);
    expect(heartbeats.health()).toBe("no heartbeat was answered for 22 s");
  });

  test("counts from when the heartbeat was sent: a stopped process finds an old answer when it wakes", () => {
    const { heartbeats, time, pass, valid } = start();
    const sentAt = time.nowMs;
    pass(60_000);
    heartbeats.noteAnswer({ apiName: "Heartbeat", sentAt });
    heartbeats.noteGood();
    expect(valid()).toBe(false);
  });

  test("is not renewed by other requests", () => {
    const { heartbeats, time, pass, valid } = start();
    heartbeats.noteAnswer({ apiName: "Heartbeat", sentAt: time.nowMs });
    heartbeats.noteGood();
    pass(termMs);
    heartbeats.noteAnswer({ apiName: "Fetch", sentAt: time.nowMs });
    heartbeats.noteGood();
    expect(valid()).toBe(false);
  });

  test("is never younger than now, though the wall clock was set back while the answer was awaited", () => {
    const { heartbeats, time, pass, valid } = start();
    heartbeats.noteAnswer({ apiName: "Heartbeat", sentAt: time.nowMs + 3_600_000 });
    heartbeats.noteGood();
    pass(termMs);
    expect(valid()).toBe(false);
  });
});

test("a session too short for three requests is refused", () => {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  expect(() => new Heartbeats({ sessionTimeoutMs: 23_999, requestTimeoutMs: 8_000 }, clock)).toThrow("three requests");
});

describe("the watch for a consumer that stands still", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("speaks up after the limit without one sign of life, and not before", () => {
    const { heartbeats } = start();
    const onSilence = vi.fn();
    heartbeats.watch(20_000, onSilence);
    vi.advanceTimersByTime(15_000);
    heartbeats.noteSignOfLife();
    vi.advanceTimersByTime(20_000);
    expect(onSilence).not.toHaveBeenCalled();
    vi.advanceTimersByTime(5_000);
    expect(onSilence).toHaveBeenCalledOnce();
    heartbeats.stop();
  });
});
