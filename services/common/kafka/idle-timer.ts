import { createRequire } from "node:module";

interface RequestQueuePrototype {
  pending: readonly unknown[];
  scheduleCheckPendingRequests(): void;
}

let patched = false;

/**
 * kafkajs 2.2.4 re-arms a timer of about 1 ms for ever on every idle connection (3.7 % of a core each): its request queue plans
 * a look at the pending requests even when none is pending. Nothing is lost by not looking: every push looks by itself.
 */
export function patchIdleTimer(): void {
  if (patched) return;
  patched = true;
  const requestQueue = createRequire(import.meta.url)("kafkajs/src/network/requestQueue/index.js") as {
    prototype: RequestQueuePrototype;
  };
  const original = requestQueue.prototype.scheduleCheckPendingRequests;
  requestQueue.prototype.scheduleCheckPendingRequests = function (this: RequestQueuePrototype): void {
    if (this.pending.length > 0) original.call(this);
  };
}
