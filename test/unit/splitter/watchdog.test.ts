import { describe, expect, it } from "vitest";
import { decide, type WatchdogAction, type WatchdogFacts } from "../../../services/splitter/core/watchdog.ts";

const hour = 3_600 * 1_000_000;
const requestedAt = 1_700_000_000_000_000;
const facts: WatchdogFacts = {
  requestedAt,
  deadline: requestedAt + 48 * hour,
  emission: 1,
  dueAt: requestedAt + hour,
  missingCount: 5,
  retentionMicros: 90 * 24 * hour,
  underWay: undefined,
};

describe("decide", () => {
  it.each<[string, Partial<WatchdogFacts>, WatchdogAction]>([
    ["stops when nothing is missing", { missingCount: 0 }, "completed"],
    ["stops when nothing is missing, however late", { missingCount: 0, dueAt: requestedAt + 49 * hour }, "completed"],
    ["asks before it emits again", {}, "ask"],
    ["waits while something is under way", { underWay: true }, "under_way"],
    ["emits again what is nowhere", { underWay: false }, "emit_again"],
    ["emits a second time", { underWay: false, emission: 2 }, "emit_again"],
    ["does not emit a third time", { underWay: false, emission: 3 }, "exhausted"],
    ["does not ask when it may not emit", { emission: 3 }, "exhausted"],
    ["leaves the deadline to the records themselves", { dueAt: requestedAt + 48 * hour }, "ask"],
    ["waits until an hour after the deadline", { dueAt: requestedAt + 49 * hour - 1, emission: 3 }, "exhausted"],
    ["closes an hour after the deadline", { dueAt: requestedAt + 49 * hour }, "close"],
    ["closes even what is under way", { dueAt: requestedAt + 49 * hour, underWay: true }, "close"],
    ["closes whatever was emitted", { dueAt: requestedAt + 60 * hour, emission: 3 }, "close"],
    ["stops when the rows are gone", { dueAt: requestedAt + 90 * 24 * hour }, "expired"],
  ])("%s", (_guarantee, change, action) => {
    expect(decide({ ...facts, ...change })).toBe(action);
  });
});
