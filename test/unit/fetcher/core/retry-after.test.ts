import { describe, expect, it } from "vitest";
import { retryAfterMs } from "../../../../services/fetcher/core/retry-after.ts";

const nowMs = Date.parse("2026-03-01T12:00:00Z");
const inSeconds = (seconds: number) => new Date(nowMs + seconds * 1_000).toUTCString();

describe("Retry-After", () => {
  it.each([
    ["0", 1_000],
    ["1", 1_000],
    ["7", 7_000],
    [" 30 ", 30_000],
    ["600", 600_000],
    ["601", 600_000],
    ["9".repeat(400), 600_000],
    [inSeconds(45), 45_000],
    [inSeconds(-45), 1_000],
    [inSeconds(7_200), 600_000],
    ["Sunday, 01-Mar-26 12:00:20 GMT", 20_000],
    ["Sun Mar  1 12:00:20 2026", 20_000],
  ])("%s asks for %i ms", (header, expected) => {
    expect(retryAfterMs(header, undefined, nowMs)).toBe(expected);
  });

  it.each(["", "-5", "1.5", "+5", "1e3", "soon", "10 seconds", "2026-03-01T12:00:45Z", "Sun, 99 Mar 2026 12:00:45 GMT", "5, 10"])(
    "ignores the nonsense %j",
    (header) => expect(retryAfterMs(header, undefined, nowMs)).toBeUndefined(),
  );

  it("is absent when the header is", () => expect(retryAfterMs(undefined, inSeconds(0), nowMs)).toBeUndefined());

  it("counts a date from the answer's own Date: the host's clock may be an hour off", () => {
    expect(retryAfterMs(inSeconds(3_630), inSeconds(3_600), nowMs)).toBe(30_000);
  });

  it("counts a date from our clock when the answer's Date is nonsense", () => {
    expect(retryAfterMs(inSeconds(30), "yesterday", nowMs)).toBe(30_000);
  });
});
