import { describe, expect, it } from "vitest";
import { cpuMsOf, memoryOf, readUsage, UsageMeter } from "../../benchmark/measure/process-usage.ts";

describe("/proc", () => {
  it("counts user and system time, whatever the process is called", () => {
    const stat = "42 (a ) name (7) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 9 9 20 0 11 0 1234 5678 90";
    expect(cpuMsOf(stat)).toBe(1_750);
    expect(cpuMsOf(stat, { withChildren: true })).toBe(1_930);
  });

  it("reads peak and present memory", () => {
    expect(memoryOf("Name:\tnode\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")).toEqual({
      peakBytes: 2_097_152,
      residentBytes: 1_048_576,
    });
  });

  it("knows a process that runs, and none that does not", () => {
    expect(readUsage(process.pid)?.residentBytes).toBeGreaterThan(0);
    // Above the largest number that Linux gives to a process.
    expect(readUsage(2 ** 22 + 1)).toBeUndefined();
  });
});

it("divides what was used by the tokens of all rounds", async () => {
  const meter = new UsageMeter();
  const burn = async () => {
    const before = process.cpuUsage();
    while (process.cpuUsage(before).user < 60_000);
  };
  await meter.during([{ name: "this", pid: process.pid }], 40, burn);
  await meter.during([{ name: "this", pid: process.pid }], 60, async () => undefined);
  const [line] = meter.lines();
  // 60 ms over 100 tokens; the kernel counts in steps of 10 ms.
  expect(line?.cpuMicrosPerToken).toBeGreaterThanOrEqual(400);
  expect(line?.peakBytes).toBeGreaterThan(0);
});
