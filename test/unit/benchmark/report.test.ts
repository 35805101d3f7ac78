import { describe, expect, it } from "vitest";
import type { Header } from "../../benchmark/measure/machine.ts";
import { failedRow, type RowResult, reportedRow, reportText, shown, voided } from "../../benchmark/measure/report.ts";

const header: Header = {
  startedAt: "2026-01-02T03:04:05.678Z",
  versions: { package: "0.1.0", node: "24.0.0", kafka: "4.3.1" },
  cores: 2,
  processor: "Some CPU",
  memoryBytes: 8 * 1024 ** 3,
  kernel: "#1 SMP",
  loadAtStart: 0.25,
  rounds: 3,
};
const row = { name: "throughput", title: "pipeline against loop" };
const result: RowResult = {
  figures: [{ name: "of the loop", direction: "at least", goal: 0.2, floor: 0.15, samples: [0.16, 0.18, 0.17] }],
  usage: { pipeline: [{ name: "fetcher", cpuMicrosPerToken: 100, peakBytes: 200 * 1024 ** 2 }] },
  notes: ["a note"],
};

const lineOf = (text: string, start: string) => text.split("\n").find((line) => line.startsWith(start)) ?? "";

describe("the report", () => {
  it("says on what machine, with what versions and under what load", () => {
    const text = reportText({ header, rows: [] });
    for (const part of ["2 × Some CPU", "8 GiB", "load 0.3", "kafka 4.3.1", "package 0.1.0", "3 rounds"])
      expect(text).toContain(part);
  });

  it("shows goal, floor, median, spread and verdict of a figure", () => {
    const text = reportText({ header, rows: [reportedRow(row, result, 12)] });
    const cells = lineOf(text, "throughput  ").split(/ {2,}/);
    expect(cells).toEqual(["throughput", "of the loop", "≥ 0.200", "≥ 0.150", "0.170", "0.160–0.180", "floor only"]);
  });

  it("shows what each process used", () => {
    const text = reportText({ header, rows: [reportedRow(row, result, 12)] });
    expect(text).toContain("pipeline: CPU per token and peak memory: fetcher 100 µs 200 MiB; together 100 µs");
  });

  it("says why a row is void, and gives it no other verdict", () => {
    const voided = reportedRow(row, { ...result, voidReason: "the API was busy" }, 12);
    const text = reportText({ header, rows: [voided] });
    expect(lineOf(text, "throughput  ")).toMatch(/void$/);
    expect(text).toContain("void: the API was busy");
  });

  it("voids a row afterwards, with every reason", () => {
    const row1 = reportedRow(row, { ...result, voidReason: "the API was busy" }, 12);
    expect(voided(row1, "others were at work")).toMatchObject({ voidReason: "the API was busy; others were at work" });
    const text = reportText({ header, rows: [voided(reportedRow(row, result, 12), "others were at work")] });
    expect(lineOf(text, "throughput  ")).toMatch(/void$/);
  });

  it("keeps the other rows when one could not be measured", () => {
    const text = reportText({
      header,
      rows: [failedRow({ name: "scale", title: "" }, "no partitions", 1), reportedRow(row, result, 12)],
    });
    expect(lineOf(text, "scale  ")).toMatch(/not measured$/);
    expect(text).toContain("not measured: no partitions");
    expect(lineOf(text, "throughput  ")).toMatch(/floor only$/);
  });
});

it.each([
  [0, "0"],
  [0.01234, "0.0123"],
  [0.5, "0.500"],
  [12.345, "12.3"],
  [1_234.5, "1235"],
  [-3.5, "-3.50"],
])("%d is shown as %s", (value, text) => {
  expect(shown(value)).toBe(text);
});
