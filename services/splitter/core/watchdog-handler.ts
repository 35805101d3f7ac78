import { microsFromMs } from "../../common/clock.ts";
import { AbandonedError } from "../../common/errors.ts";
import type { BatchHandler, DecodedRecord } from "../../common/kafka/contracts.ts";
import type { RefreshWatchdog } from "../../common/messages/records.ts";
import type { HandOver, Handover, IsUnderWay, ReadDone, ReadRegistered } from "./ports.ts";
import { checkWatchdog } from "./record-check.ts";
import { knownTokens } from "./refresh-handler.ts";
import { closeRefresh, missingOrdinals, splitRefresh } from "./split.ts";
import { closingGraceMicros, decide, type WatchdogAction } from "./watchdog.ts";

export interface WatchdogHandlerParts {
  readonly readDone: ReadDone;
  readonly readRegistered: ReadRegistered;
  readonly isUnderWay: IsUnderWay;
  readonly handOver: HandOver;
  readonly madeChecks: MadeChecks;
  readonly delayMs: number;
  readonly retentionMicros: number;
  readonly report: (event: WatchdogEvent) => void;
}

/**
 * The checks whose effects are acknowledged. A redelivered refresh starts a second chain with the same numbers: whoever meets a
 * check for the second time drops it, next check included, and that chain has died. Bounded and in memory, for it spares work and
 * decides nothing: a check made twice emits duplicates, which count once.
 */
export interface MadeChecks {
  has(check: string): boolean;
  add(check: string): void;
}

export interface WatchdogEvent {
  readonly action: Exclude<WatchdogAction, "ask"> | "repeated";
  readonly watchdog: RefreshWatchdog;
  readonly missingCount: number;
}

/** Makes the checks of the watchdog that are due: README, Exactness. */
export function createWatchdogHandler(parts: WatchdogHandlerParts): BatchHandler<RefreshWatchdog> {
  return async (records, { signal }) => {
    // All of them first: a poisoned one has the batch cut up and given again.
    for (const { value } of records) checkWatchdog(value);
    for (const record of records) {
      if (signal.aborted) throw new AbandonedError("the partition was given up between two checks");
      const name = `${record.value.refresh.refresh_id}/${record.value.check}`;
      if (parts.madeChecks.has(name)) {
        parts.report({ action: "repeated", watchdog: record.value, missingCount: 0 });
        continue;
      }
      parts.report(await makeCheck(parts, record, signal));
      parts.madeChecks.add(name);
    }
  };
}

async function makeCheck(
  parts: WatchdogHandlerParts,
  record: DecodedRecord<RefreshWatchdog>,
  signal: AbortSignal,
): Promise<WatchdogEvent> {
  const { refresh } = record.value;
  const readMissing = async () => missingOrdinals(refresh.token_ids.length, await parts.readDone(refresh.refresh_id));
  let missing = await readMissing();
  let action = decide({ ...factsOf(parts, record), missingCount: missing.length, underWay: undefined });
  if (action === "ask") {
    const underWay = await parts.isUnderWay(refresh.project_id, refresh.collection_address);
    missing = await readMissing();
    action = decide({ ...factsOf(parts, record), missingCount: missing.length, underWay });
  }
  if (action === "ask") throw new Error("the watchdog asks twice");
  if (action !== "completed" && action !== "expired") {
    await parts.handOver(await handoverFor(parts, record.value, { action, missing }), signal);
  }
  return { action, watchdog: record.value, missingCount: missing.length };
}

function factsOf({ delayMs, retentionMicros }: WatchdogHandlerParts, { value, timestampMs }: DecodedRecord<RefreshWatchdog>) {
  return {
    requestedAt: value.refresh.requested_at,
    deadline: value.refresh.deadline,
    emission: value.emission,
    dueAt: microsFromMs(timestampMs + delayMs),
    retentionMicros,
  };
}

/** The next check, and before it the tokens emitted again or the outcomes that close them. */
async function handoverFor(
  { readRegistered }: WatchdogHandlerParts,
  { check, emission, refresh }: RefreshWatchdog,
  { action, missing }: { action: WatchdogAction; missing: readonly number[] },
): Promise<Handover> {
  if (action === "emit_again") {
    const again = emission + 1;
    const isKnown = await knownTokens(readRegistered, refresh);
    const split = splitRefresh(refresh, { ordinals: missing, isKnown, emission: again });
    return { ...split, check: { check: check + 1, emission: again, refresh } };
  }
  const createdAt = refresh.deadline + closingGraceMicros;
  const outcomes = action === "close" ? closeRefresh(refresh, { ordinals: missing, emission, createdAt }) : [];
  return { requested: [], outcomes, check: { check: check + 1, emission, refresh } };
}
