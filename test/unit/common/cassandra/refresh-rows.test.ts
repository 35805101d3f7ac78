import { describe, expect, it } from "vitest";
import { writeRefreshRows } from "../../../../services/common/cassandra/refresh-rows.ts";
import type { RefreshRequested } from "../../../../services/common/messages/records.ts";

const requestedMs = Date.UTC(2026, 0, 31, 23, 59, 59, 999);
const record: RefreshRequested = {
  refresh_id: "019c1111-77a1-7187-b0e9-0460829f6814",
  project_id: 7,
  collection_address: `0x${"ab".repeat(20)}`,
  token_ids: ["1", "2"],
  requested_at: requestedMs * 1000,
  deadline: 0,
  metadata_api_url: "",
  token_policy: "open",
  max_concurrency: null,
  max_requests_per_second: null,
};

interface Written {
  readonly query: string;
  readonly params: readonly unknown[];
}

async function rowsAt(nowMs: number, retentionSeconds: number): Promise<Written[]> {
  const written: Written[] = [];
  const write = async (query: string, params: readonly unknown[]) => void written.push({ query, params });
  await writeRefreshRows({ write }, record, { retentionSeconds, nowMs });
  return written;
}

const ttls = async (nowMs: number, retentionSeconds: number) =>
  new Set((await rowsAt(nowMs, retentionSeconds)).map(({ params }) => params.at(-1)));

describe("the rows of a refresh", () => {
  it("have content and write time from the record alone, whenever and by whomever they are written", async () => {
    const [now, later] = await Promise.all([rowsAt(requestedMs, 90), rowsAt(requestedMs + 20_000, 90)]);
    const withoutTtl = (rows: Written[]) => rows.map(({ query, params }) => ({ query, params: params.slice(0, -1) }));
    expect(withoutTtl(later)).toEqual(withoutTtl(now));
    expect(now.map(({ params }) => params.at(-2))).toEqual(Array(4).fill(record.requested_at));
  });

  it("stand in the month of the request", async () => {
    const months = (await rowsAt(requestedMs + 5_000, 90)).flatMap(({ params }) =>
      params.filter((value) => /^\d{4}-\d\d$/.test(String(value))),
    );
    expect(months).toEqual(["2026-01", "2026-01"]);
  });

  it.each([
    ["the whole retention at once", 0, 7_776_000, 7_776_000],
    ["what is left of it later", 1_000_000, 7_776_000, 7_775_000],
    ["a started second more, not less", 500, 100, 100],
    ["a minute when less is left", 95_000, 100, 60],
    ["a minute when nothing is left", 1_000_000, 100, 60],
    ["no more than Cassandra takes", 0, 10 ** 12, 630_720_000],
  ])("live for %s", async (_name, lateMs, retentionSeconds, ttl) => {
    expect(await ttls(requestedMs + lateMs, retentionSeconds)).toEqual(new Set([ttl]));
  });

  it("are all tried, and a failure of one is reported", async () => {
    const tried: string[] = [];
    const write = async (query: string) => {
      tried.push(query);
      if (query.includes("refresh_tokens")) throw new Error("no");
    };
    await expect(writeRefreshRows({ write }, record, { retentionSeconds: 90, nowMs: requestedMs })).rejects.toThrow("no");
    expect(tried).toHaveLength(4);
  });
});
