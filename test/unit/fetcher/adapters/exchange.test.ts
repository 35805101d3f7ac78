import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Deadlines } from "../../../../services/fetcher/adapters/deadlines.ts";
import { Exchange } from "../../../../services/fetcher/adapters/exchange.ts";
import type { CallResult } from "../../../../services/fetcher/core/results.ts";

const body = Buffer.from('{"name":"a"}');
const controller = {} as Parameters<Exchange["onResponseData"]>[0];
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setImmediate", "performance"] });
});
afterEach(() => void vi.useRealTimers());

/** A call that begins now, with the real deadline of 3 s and a clock that is told when to go on. */
function begin(receivedBytes = () => 0) {
  const results: CallResult[] = [];
  const deadlines = new Deadlines<Exchange>(3_000, clock);
  const exchange = new Exchange({
    surroundings: { clock, bodyCapBytes: 262_144, isLate: (call) => deadlines.isLate(call), held: () => {} },
    connection: {
      get receivedBytes() {
        return receivedBytes();
      },
    },
    settled: (call, result) => {
      deadlines.end(call);
      results.push(result);
    },
  });
  deadlines.start(exchange);
  return { exchange, results, deadlines };
}
const pass = (ms: number) => vi.advanceTimersByTime(ms);

describe("an answer", () => {
  it.each([
    ["first byte at 2.9 s, complete at 2.99 s", 2_900, 90, { ok: true, text: String(body) }],
    ["first byte and all the rest at 2.99 s", 2_990, 0, { ok: true, text: String(body) }],
    ["first byte at 2.99 s, complete at 3.01 s", 2_990, 20, { ok: false, detail: "timeout", status: 200 }],
    ["first byte at 3.01 s", 3_010, 0, { ok: false, detail: "timeout", status: null, excerpt: null }],
    ["first byte at once, complete at 3.01 s", 0, 3_010, { ok: false, detail: "timeout", status: 200 }],
  ])("%s", (_name, firstByteMs, moreMs, expected) => {
    const { exchange, results } = begin();
    pass(firstByteMs);
    exchange.onResponseStart(controller, 200, {});
    exchange.onResponseData(controller, body.subarray(0, 1));
    pass(moreMs);
    exchange.onResponseData(controller, body.subarray(1));
    exchange.onResponseEnd();
    expect(results).toHaveLength(1);
    expect(results[0]).toMatchObject(expected);
  });

  it("of one byte in 900 ms is cut off at 3 s, however long it would go on", () => {
    const { exchange, results, deadlines } = begin();
    exchange.onResponseStart(controller, 200, {});
    for (let byte = 0; byte < body.length && results.length === 0; byte++) {
      exchange.onResponseData(controller, body.subarray(byte, byte + 1));
      pass(900);
    }
    expect(results).toEqual([expect.objectContaining({ ok: false, detail: "timeout", status: 200, bodyBytes: 4 })]);
    expect(results[0]?.durationMs).toBeLessThan(3_100);
    expect(deadlines.size).toBe(0);
  });

  it("is told of once, whatever comes after it", () => {
    const { exchange, results } = begin();
    exchange.onResponseStart(controller, 200, {});
    exchange.onResponseData(controller, body);
    exchange.onResponseEnd();
    exchange.onResponseEnd();
    exchange.onResponseError(null, new Error("destroyed"));
    exchange.look();
    exchange.expire();
    pass(4_000);
    expect(results).toEqual([expect.objectContaining({ ok: true })]);
  });

  it.each([
    [null, "protocol"],
    [200, "body_too_large"],
    [404, "unexpected_status"],
  ])("whose bytes on the wire never become a body is cut off soon, with the status %s", (status, detail) => {
    let receivedBytes = 0;
    const { exchange, results } = begin(() => receivedBytes);
    if (status !== null) exchange.onResponseStart(controller, status, {});
    receivedBytes = 524_288;
    pass(500);
    expect(results).toEqual([]);
    receivedBytes += 1;
    pass(40);
    expect(results).toEqual([expect.objectContaining({ ok: false, detail, status, bodyBytes: 0 })]);
  });
});
