import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Openings } from "../../../../services/fetcher/adapters/openings.ts";
import { type Connection, OriginPool } from "../../../../services/fetcher/adapters/origin-pool.ts";

const perTurn = 8;
const patienceMs = 100;

let nowMs: number;
let openings: Openings;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setImmediate"] });
  nowMs = 0;
  openings = new Openings({ nowMs: () => nowMs, monotonicMs: () => nowMs });
});
afterEach(() => void vi.useRealTimers());

/** The event loop comes round, after so long. */
function turn(ms = 0): void {
  nowMs += ms;
  vi.advanceTimersToNextTimer();
}
const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index);

describe("connections", () => {
  /** The numbers of those that were opened, in order. */
  function ask(count: number): number[] {
    const opened: number[] = [];
    for (const number of numbers(0, count)) openings.ask(() => void opened.push(number));
    return opened;
  }

  it("are opened at once while they are few, and a few in each turn of the loop, the longest waiting first", () => {
    const opened = ask(20);
    expect(opened).toEqual(numbers(0, perTurn));
    turn();
    expect(opened).toEqual(numbers(0, 2 * perTurn));
    turn();
    expect(opened).toEqual(numbers(0, 20));
  });

  it("are not opened before one that waits already", () => {
    const opened = ask(perTurn + 1);
    turn();
    opened.length = 0;
    const later = ask(perTurn);
    expect([opened, later]).toEqual([[], numbers(0, perTurn - 1)]);
    turn();
    expect(later).toEqual(numbers(0, perTurn));
  });

  it("do not wait for long, however slow the turns are", () => {
    const opened = ask(1_000);
    turn(patienceMs - 1);
    expect(opened).toHaveLength(2 * perTurn);
    turn(1);
    expect(opened).toEqual(numbers(0, 1_000));
  });

  it("cost no turn once all are open", () => {
    ask(perTurn + 1);
    turn();
    turn();
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("a call without a connection", () => {
  const shared = () => ({ idleCount: { now: 0, most: 100 }, openings });
  /** Connections that are never there: what matters is who is given which. */
  const poolOf = (port: number) => new OriginPool(`http://127.0.0.1:${port}`, () => undefined, shared());
  function use(pool: OriginPool, count: number): Connection[] {
    const given: Connection[] = [];
    for (let call = 0; call < count; call++) pool.use((connection) => void given.push(connection));
    return given;
  }

  it("is given the next that becomes free, before a new one is opened", async () => {
    const given = use(poolOf(1), perTurn);
    const pool = poolOf(2);
    const later = use(pool, 2);
    expect([given.length, later.length]).toEqual([perTurn, 0]);
    turn();
    const [first, second] = later;
    const waiting = use(pool, perTurn);
    expect(waiting).toHaveLength(perTurn - 2);
    if (first !== undefined) pool.giveBack(first);
    // Only when the answer that freed it is dealt with.
    expect(waiting).toHaveLength(perTurn - 2);
    await Promise.resolve();
    expect(waiting.at(-1)).toBe(first);
    turn();
    expect(waiting).toHaveLength(perTurn);
    expect(new Set([...waiting, second]).size).toBe(perTurn + 1);
  });

  it("is not given another project's, nor one that must not be used again", async () => {
    const [foreign] = use(poolOf(1), 1);
    const pool = poolOf(2);
    const [broken] = use(pool, perTurn - 1);
    const waiting = use(pool, 1);
    broken?.destroy();
    await Promise.resolve();
    expect(waiting).toEqual([]);
    turn();
    expect(waiting).toHaveLength(1);
    expect([foreign, broken]).not.toContain(waiting[0]);
  });
});
