import { createRequire } from "node:module";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { patchIdleTimer } from "../../../../services/common/kafka/idle-timer.ts";

interface RequestQueue {
  pending: object[];
  checkPendingRequests(): void;
  scheduleCheckPendingRequests(): void;
}

const RequestQueue = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js") as new (
  options: object,
) => RequestQueue;

beforeEach(() => {
  vi.useFakeTimers();
  patchIdleTimer();
});
afterEach(() => {
  vi.useRealTimers();
});

function requestQueue(): RequestQueue {
  const logger = { debug: () => undefined };
  return new RequestQueue({ maxInFlightRequests: 1, requestTimeout: 1_000, clientId: "any", broker: "any", logger });
}

it("arms no timer on a connection that has nothing to send", () => {
  const queue = requestQueue();
  queue.checkPendingRequests();
  expect(vi.getTimerCount()).toBe(0);
});

it("still looks after requests that wait for their turn", () => {
  const queue = requestQueue();
  queue.pending = [{}];
  queue.scheduleCheckPendingRequests();
  expect(vi.getTimerCount()).toBe(1);
});
