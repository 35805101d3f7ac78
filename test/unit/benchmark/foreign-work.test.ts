import { expect, it } from "vitest";
import { busyMsOf, foreignShare } from "../../benchmark/measure/foreign-work.ts";

it("counts as busy all but idle and waiting for disks", () => {
  const stat = "cpu  100 10 50 9000 800 5 4 3 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
  expect(busyMsOf(stat)).toBe(1_720);
});

it.each([
  { what: "nobody else", busyMs: 1_500, ownMs: 1_500, share: 0 },
  { what: "half of two processors", busyMs: 1_500, ownMs: 500, share: 0.5 },
  // The kernel books the ticks of processes and of the machine at different moments.
  { what: "a little less than nobody", busyMs: 1_490, ownMs: 1_500, share: 0 },
])("others used: $what", ({ busyMs, ownMs, share }) => {
  const before = { atMs: 5_000, busyMs: 100, ownMs: 70 };
  expect(foreignShare(before, { atMs: 6_000, busyMs: 100 + busyMs, ownMs: 70 + ownMs }, 2)).toBe(share);
});
