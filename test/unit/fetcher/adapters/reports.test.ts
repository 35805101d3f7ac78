import { describe, expect, it } from "vitest";
import { createReports } from "../../../../services/fetcher/adapters/reports.ts";
import { conclude } from "../../../../services/fetcher/core/attempt-rules.ts";
import type { CallResult } from "../../../../services/fetcher/core/results.ts";
import { Work } from "../../../../services/fetcher/core/work.ts";
import { createServiceContext } from "../../../support/service-context.ts";
import { failure, rules, success, tokenRefresh, topics } from "../core/records.ts";

function reporting(logLevel: string) {
  const context = createServiceContext("fetcher", { logLevel });
  const { logger, metrics, logs } = context;
  const report = createReports({ logger, metrics, tiers: topics.retryTiers, maxAttempts: 3 });
  const workOf = (changes: Parameters<typeof tokenRefresh>[0] = {}): Work => {
    const refresh = tokenRefresh(changes);
    const endpoint = { ok: true, url: refresh.metadata_api_url, origin: "https://api.example.com" } as const;
    const route = { endpoint, queue: `${refresh.project_id} ${endpoint.origin}` };
    return new Work(refresh, { route, positions: [], offeredAtMs: 0, lastAttempt: false });
  };
  const attempted = (result: CallResult, changes: Parameters<typeof tokenRefresh>[0] = {}) => {
    const work = workOf(changes);
    report.attempted(work, result, conclude(work.refresh, result, rules));
  };
  const moved = (project: number, count: number) => {
    const [, tier] = topics.retryTiers;
    const works = Array.from({ length: count }, () => workOf({ project_id: project }));
    if (tier !== undefined) report.moved({ cause: "surplus", tier, works });
  };
  return { attempted, moved, logs, metrics };
}

const secret = failure({ excerpt: "secret body\r\nwith a second line", status: 429, detail: "rate_limited" });

describe("the report of an attempt", () => {
  it("is one line at debug, with ids and times, without body and URL", () => {
    const { attempted, logs } = reporting("debug");
    attempted(secret, {
      metadata_api_url: "https://user:password@api.example.com/tokens?key=1",
      token_id: "12345678901234567890",
    });
    expect(logs).toHaveLength(1);
    expect(logs[0]).toMatchObject({
      level: "debug",
      event: "fetch.attempted",
      refresh_id: tokenRefresh().refresh_id,
      ordinal: 0,
      attempt: 1,
      max_attempts: 3,
      result: "rate_limited",
      status: 429,
      duration_ms: 12,
      wait_ms: 2_000,
    });
    expect(JSON.stringify(logs)).not.toMatch(/secret|example|password|key=/);
  });

  it("is no line at info", () => {
    const { attempted, logs } = reporting("info");
    attempted(success());
    attempted(secret);
    expect(logs).toEqual([]);
  });

  it("is counted by how it ended, by what answered and by its tier", async () => {
    const { attempted, metrics } = reporting("info");
    attempted(success());
    attempted(secret);
    attempted(failure({ status: 999 }));
    attempted(failure({ status: null, detail: "timeout" }));
    const { body } = await metrics.text();
    expect(body).toContain('metadata_fetch_results_total{result="succeeded",service="fetcher"} 1');
    expect(body).toContain('metadata_fetch_results_total{result="timeout",service="fetcher"} 1');
    expect(body).toContain('metadata_fetch_results_total{result="dns",service="fetcher"} 0');
    expect(body).toContain('metadata_fetch_duration_seconds_count{service="fetcher",status_class="4xx"} 1');
    expect(body).toContain('metadata_fetch_duration_seconds_count{service="fetcher",status_class="other"} 1');
    expect(body).toContain('metadata_fetch_duration_seconds_count{service="fetcher",status_class="none"} 1');
    expect(body).toContain('retry_scheduled_total{tier="retry-2s",service="fetcher"} 1');
  });

  it("of a blocked call is counted every time, and told once for a project", async () => {
    const { attempted, logs, metrics } = reporting("info");
    const blocked = failure({ detail: "blocked_address", status: null, excerpt: null, block: "private_range" });
    for (let call = 0; call < 5; call++) attempted(blocked);
    attempted(blocked, { project_id: 8 });
    expect(logs.map(({ level, event, project_id }) => [level, event, project_id])).toEqual([
      ["warn", "fetch.blocked", 7],
      ["warn", "fetch.blocked", 8],
    ]);
    expect((await metrics.text()).body).toContain('fetch_blocked_total{reason="private_range",service="fetcher"} 6');
  });
});

describe("the report of an overflow", () => {
  it("counts every record, by tier and cause, and is one line for a project", async () => {
    const { moved, logs, metrics } = reporting("info");
    for (const project of [7, 7, 8]) moved(project, 10);
    expect(logs).toMatchObject([
      { level: "info", event: "fetch.overflowed", project_id: 7, cause: "surplus", records: 10, wait_ms: 10_000 },
      { event: "fetch.overflowed", project_id: 8 },
    ]);
    expect(logs).toHaveLength(2);
    const { body } = await metrics.text();
    expect(body).toContain('overflow_records_total{tier="retry-10s",cause="surplus",service="fetcher"} 30');
    expect(body).toContain('overflow_records_total{tier="retry-2s",cause="held_back",service="fetcher"} 0');
  });
});
