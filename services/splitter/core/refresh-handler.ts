import { microsFromMs } from "../../common/clock.ts";
import { AbandonedError } from "../../common/errors.ts";
import type { BatchHandler } from "../../common/kafka/contracts.ts";
import type { RefreshRequested } from "../../common/messages/records.ts";
import type { HandOver, ReadDone, ReadRegistered, WriteRefresh } from "./ports.ts";
import { checkRefresh } from "./record-check.ts";
import { missingOrdinals, splitRefresh } from "./split.ts";

export interface RefreshHandlerParts {
  readonly writeRefresh: WriteRefresh;
  readonly readDone: ReadDone;
  readonly readRegistered: ReadRegistered;
  readonly handOver: HandOver;
  readonly nowMs: () => number;
  readonly retentionMicros: number;
  readonly report: (event: RefreshEvent) => void;
}

/**
 * - split: tokens handed over. completed: a redelivery of a refresh that has ended.
 * - expired: older than its rows are kept, as after a reset to the start of the topic: tokens called anew would end it twice.
 */
export interface RefreshEvent {
  readonly result: "split" | "completed" | "expired";
  readonly refresh: RefreshRequested;
  readonly requestedCount: number;
  readonly notFoundCount: number;
}

/** Splits accepted refreshes, one after the other; each is acknowledged whole before the next begins. */
export function createRefreshHandler(parts: RefreshHandlerParts): BatchHandler<RefreshRequested> {
  // Refreshes handed over in a batch that is not done: its next try writes their rows alone. By assignment, and gone with it.
  const handedOverUnder = new WeakMap<AbortSignal, Set<string>>();
  return async (records, { signal }) => {
    // All of them first: a poisoned one has the batch cut up and given again, and the others must not be split twice for it.
    for (const { value } of records) checkRefresh(value);
    const handedOver = handedOverUnder.get(signal) ?? new Set();
    handedOverUnder.set(signal, handedOver);
    for (const { value } of records) {
      if (signal.aborted) throw new AbandonedError("the partition was given up between two refreshes");
      await handleRefresh(parts, value, { signal, handedOver });
    }
    for (const { value } of records) handedOver.delete(value.refresh_id);
  };
}

async function handleRefresh(
  parts: RefreshHandlerParts,
  refresh: RefreshRequested,
  { signal, handedOver }: { signal: AbortSignal; handedOver: Set<string> },
): Promise<void> {
  if (handedOver.has(refresh.refresh_id)) return parts.writeRefresh(refresh);
  const nothing = { refresh, requestedCount: 0, notFoundCount: 0 };
  if (microsFromMs(parts.nowMs()) >= refresh.requested_at + parts.retentionMicros) {
    return parts.report({ result: "expired", ...nothing });
  }
  const [done, isKnown] = await Promise.all([parts.readDone(refresh.refresh_id), knownTokens(parts.readRegistered, refresh)]);
  const ordinals = missingOrdinals(refresh.token_ids.length, done);
  if (ordinals.length === 0) {
    await parts.writeRefresh(refresh);
    return parts.report({ result: "completed", ...nothing });
  }
  const { requested, outcomes } = splitRefresh(refresh, { ordinals, isKnown, emission: 1 });
  const handOver = async () => {
    await parts.handOver({ requested, outcomes, check: { check: 1, emission: 1, refresh } }, signal);
    handedOver.add(refresh.refresh_id);
    parts.report({ result: "split", refresh, requestedCount: requested.length, notFoundCount: outcomes.length });
  };
  // Ingress has nearly always written the rows, and the tokens need not wait for them to be written again.
  const effects = [handOver(), parts.writeRefresh(refresh)];
  // Both have ended before one's failure is told: the next try must not meet what is left of this one.
  await Promise.allSettled(effects);
  await Promise.all(effects);
}

/** With the policy `open` every token exists and nothing is read. */
export async function knownTokens(
  readRegistered: ReadRegistered,
  refresh: RefreshRequested,
): Promise<(tokenId: string) => boolean> {
  if (refresh.token_policy === "open") return () => true;
  const registered = await readRegistered(refresh.collection_address, refresh.token_ids);
  return (tokenId) => registered.has(tokenId);
}
