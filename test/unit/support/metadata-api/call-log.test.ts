import { describe, expect, it } from "vitest";
import { CallLog, type CallRecord } from "../../../support/metadata-api/call-log.ts";

function fill(log: CallLog, count: number): void {
  for (let call = 0; call < count; call++) log.add({ sequence: log.nextSequence } as CallRecord);
}
const sequences = (log: CallLog, after: number, most: number) => log.page(after, most).calls.map(({ sequence }) => sequence);

describe("the log of calls", () => {
  it("gives page after page, each call once", () => {
    const log = new CallLog(100);
    fill(log, 25);
    const seen: number[] = [];
    for (let after = 0, page = log.page(after, 10); page.calls.length > 0; after = page.next, page = log.page(after, 10)) {
      seen.push(...page.calls.map(({ sequence }) => sequence));
    }
    expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => index + 1));
  });

  it("keeps the last calls and says how many it has dropped", () => {
    const log = new CallLog(10);
    fill(log, 25);
    expect(sequences(log, 0, 100)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
    expect(log.page(0, 100).dropped).toBe(15);
    expect(sequences(log, 20, 3)).toEqual([21, 22, 23]);
  });

  it("waits at its end for what comes next", () => {
    const log = new CallLog(10);
    fill(log, 3);
    const { next } = log.page(0, 100);
    expect(log.page(next, 100)).toEqual({ calls: [], next: 3, dropped: 0 });
    fill(log, 1);
    expect(sequences(log, next, 100)).toEqual([4]);
  });

  it("never gives a number twice, also when it was emptied", () => {
    const log = new CallLog(10);
    fill(log, 12);
    log.clear();
    expect(log.page(0, 100)).toEqual({ calls: [], next: 12, dropped: 0 });
    fill(log, 2);
    expect(sequences(log, 0, 100)).toEqual([13, 14]);
    expect(sequences(log, 13, 100)).toEqual([14]);
  });

  it("may keep nothing", () => {
    const log = new CallLog(0);
    fill(log, 3);
    expect(log.page(0, 100)).toEqual({ calls: [], next: 3, dropped: 3 });
  });
});
