import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Tiers } from "../../../../../services/common/kafka/consume/tiers.ts";
import { loadTopics } from "../../../../../services/common/kafka/topics.ts";
import { Metrics } from "../../../../../services/common/metrics/metrics.ts";
import { BrokerClock } from "../../../../../services/common/retry/broker-clock.ts";

const tiers = loadTopics({ delays: "retry-2s=1000" }).retryTiers;
const partition = { topic: tiers[0]?.name ?? "", partition: 0 };
/** The broker's clock is this far ahead of our monotonic one. */
const aheadMs = 1_000_000;

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ["setTimeout", "clearTimeout", "performance", "Date"] });
});

afterEach(() => {
  vi.useRealTimers();
});

function start({ clockKnown = true } = {}) {
  const brokerClock = new BrokerClock();
  const learn = (): void => brokerClock.observe({ appendTimeMs: aheadMs + performance.now(), seenAtMs: performance.now() });
  if (clockKnown) learn();
  const state = { room: true, released: [] as number[], emptied: 0, lookedForRoom: 0 };
  const held = new Tiers<{ timestampMs: number }>({
    tiers,
    brokerClock,
    clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now() },
    metrics: new Metrics("test"),
    release: (_partition, records) => void state.released.push(...records.map(({ timestampMs }) => timestampMs - aheadMs)),
    hasRoom: () => {
      state.lookedForRoom += 1;
      return state.room;
    },
    onEmpty: () => {
      state.emptied += 1;
    },
  });
  const hold = (...appendedMs: readonly number[]): void =>
    held.hold(
      partition,
      appendedMs.map((ms) => ({ timestampMs: aheadMs + ms })),
      10,
    );
  return { held, hold, state, learn };
}

test("releases each record on time, and asks for more when the last is out", () => {
  const { hold, state } = start();
  hold(0, 400);
  vi.advanceTimersByTime(999);
  expect(state.released).toEqual([]);
  vi.advanceTimersByTime(2);
  expect(state).toMatchObject({ released: [0], emptied: 0 });
  vi.advanceTimersByTime(400);
  expect(state).toMatchObject({ released: [0, 400], emptied: 1 });
});

test("releases nothing before anything has shown the broker's clock", () => {
  const { hold, state, learn } = start({ clockKnown: false });
  hold(0);
  vi.advanceTimersByTime(60_000);
  expect(state.released).toEqual([]);
  learn();
  vi.advanceTimersByTime(250);
  expect(state.released).toEqual([0]);
});

test("keeps what is due while there is no room, and releases it as soon as there is", () => {
  const { hold, state } = start();
  state.room = false;
  hold(0);
  vi.advanceTimersByTime(5_000);
  expect(state.released).toEqual([]);
  // A window may be full for minutes: it is not looked at in every turn of the loop.
  expect(state.lookedForRoom).toBeLessThan(200);
  state.room = true;
  vi.advanceTimersByTime(250);
  expect(state.released).toEqual([0]);
});

test("lets others have their turn between the many that are due at once, and takes them from every partition alike", () => {
  const { held, hold, state } = start();
  const many = Array.from({ length: 1_000 }, () => 0);
  hold(...many);
  held.hold(
    { ...partition, partition: 1 },
    many.map((ms) => ({ timestampMs: aheadMs + ms })),
    10,
  );
  const counts: number[] = [];
  for (let turn = 0; turn < 2_000; turn++) {
    const before = state.released.length;
    vi.advanceTimersByTime(1);
    if (state.released.length > before) counts.push(state.released.length - before);
    if (state.released.length === 1_500) expect(state.emptied).toBe(0);
  }
  expect(counts).toEqual(Array.from({ length: 8 }, () => 250));
  expect(state.emptied).toBe(2);
});

test("releases nothing of a partition that was lost, nor after the stop", () => {
  const { held, hold, state } = start();
  hold(0);
  held.drop(partition);
  vi.advanceTimersByTime(2_000);
  hold(2_000);
  held.stop();
  vi.advanceTimersByTime(10_000);
  expect(state.released).toEqual([]);
});
