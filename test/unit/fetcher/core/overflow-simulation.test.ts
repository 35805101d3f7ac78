import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seeded } from "./simulation/events.ts";
import { type Answer, type Host, type Tally, VirtualFetcher } from "./virtual-fetcher.ts";

let fetcher: VirtualFetcher;
let random: () => number;
beforeEach(() => {
  fetcher = new VirtualFetcher();
  random = seeded(1);
});
afterEach(() => {
  expect(fetcher.failures).toEqual([]);
});

const answering = (ms: number): Host => ({ answer: () => ({ status: 200, ms: ms * (0.9 + 0.2 * random()) }) });
const hanging: Host = { answer: () => "hangs" };

/** Takes so many at once, and refuses the others. */
function atMost(limit: () => number, ms: number): Answer {
  let ends: number[] = [];
  return (nowMs) => {
    ends = ends.filter((endMs) => endMs > nowMs);
    if (ends.length >= limit()) return { status: 429, ms: 2 };
    ends.push(nowMs + ms);
    return { status: 200, ms };
  };
}

/** Of each second. */
async function answeredEachSecond(tally: Tally, seconds: number): Promise<number[]> {
  const counts: number[] = [];
  for (let second = 0; second < seconds; second += 1) {
    const before = tally.answered;
    await fetcher.pass(1_000);
    counts.push(tally.answered - before);
  }
  return counts;
}

const quantile = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))] ?? Number.NaN;

async function probe(project: number, tally: Tally, seconds: number): Promise<number[]> {
  const before = tally.waitsMs.length;
  for (let round = 0; round < 10 * seconds; round += 1) {
    fetcher.request(project, 20);
    await fetcher.pass(100);
  }
  return tally.waitsMs.slice(before);
}

describe("a project that is alone", () => {
  const host = { ...answering(200), maxConcurrency: 64 };

  it("with more tokens than there is room for never waits for what is away", async () => {
    const tally = fetcher.project(1, 0, host);
    for (let refresh = 0; refresh < 6; refresh += 1) fetcher.request(1, 1_000);
    const counts = await answeredEachSecond(tally, 18);
    expect(tally.moved).toBeGreaterThan(0);
    expect(Math.min(...counts.slice(2))).toBeGreaterThan(200);
  });

  it("overflows not at all while there is room", async () => {
    const tally = fetcher.project(1, 0, host);
    for (let refresh = 0; refresh < 4; refresh += 1) fetcher.request(1, 1_000);
    await fetcher.pass(16_000);
    expect(tally).toMatchObject({ answered: 4_000, moved: 0 });
  });
});

describe("a host that takes four times as many as before", () => {
  it("never idles while tokens of it wait in the tiers", async () => {
    let limit = 4;
    const tally = fetcher.project(1, 0, { answer: atMost(() => limit, 100) });
    for (let refresh = 0; refresh < 10; refresh += 1) fetcher.request(1, 1_000);
    const before = await answeredEachSecond(tally, 20);
    expect(fetcher.away).toBeGreaterThan(4_000);
    limit = 16;
    const after = await answeredEachSecond(tally, 40);
    expect(Math.min(...before.slice(2), ...after)).toBeGreaterThan(20);
    expect(fetcher.away).toBeGreaterThan(0);
  });
});

describe("hanging projects whose tokens fill the window five times", () => {
  async function beside(count: number, partitionOf: (index: number) => number): Promise<{ p99Ms: number; moved: number }> {
    const healthy = fetcher.project(100, 0, answering(20));
    const others = Array.from({ length: count }, (_, index) => fetcher.project(index + 1, partitionOf(index), hanging));
    for (const index of others.keys()) for (let refresh = 0; refresh < 5; refresh += 1) fetcher.request(index + 1, 1_000);
    await probe(100, healthy, 8);
    const p99Ms = quantile(await probe(100, healthy, 12), 0.99);
    return { p99Ms, moved: others.reduce((total, { moved }) => total + moved, 0) };
  }

  it.each([
    ["the same partition", () => 0],
    ["other partitions", (index: number) => 1 + index],
  ])("in %s do not delay a healthy one once they have been read, and are moved about twice", async (_where, partitionOf) => {
    const { p99Ms, moved } = await beside(5, partitionOf);
    expect(p99Ms).toBeLessThan(40);
    expect(moved).toBeLessThan(60_000);
  });
});

describe("a long backlog of slow projects", () => {
  it("is moved less than twice, then costs next to nothing, and does not delay those who come after it", async () => {
    const slow = { ...answering(2_500), maxConcurrency: 1 };
    const tallies = Array.from({ length: 24 }, (_, index) => fetcher.project(index + 1, index % 12, slow));
    const movedCount = () => tallies.reduce((total, { moved }) => total + moved, 0);
    for (const index of tallies.keys()) fetcher.request(index + 1, 1_000);
    await fetcher.pass(20_000);
    const before = movedCount();
    expect(before).toBeLessThan(2 * 24_000);
    const quick = fetcher.project(100, 0, answering(5));
    for (let round = 0; round < 5; round += 1) {
      fetcher.request(100, 3_000);
      await fetcher.pass(1_000);
    }
    expect(quick).toMatchObject({ answered: 15_000, moved: 0 });
    expect(movedCount() - before).toBeLessThan(5 * 2_000);
  });
});
