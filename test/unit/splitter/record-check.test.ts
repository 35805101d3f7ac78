import { describe, expect, it } from "vitest";
import { PoisonRecordError } from "../../../services/common/errors.ts";
import { checkRefresh, checkWatchdog } from "../../../services/splitter/core/record-check.ts";
import { refreshOf } from "./refreshes.ts";

describe("a record that every try would fail on is poison", () => {
  it.each([
    ["refresh_id", { refresh_id: "no uuid" }],
    ["project_id", { project_id: -1 }],
    ["collection_address", { collection_address: "0x12" }],
    ["collection_address", { collection_address: `0x${"A".repeat(40)}` }],
    ["token_ids", { token_ids: [] }],
    ["token_ids.1", { token_ids: ["1", "-1"] }],
    ["token_ids.0", { token_ids: ["1e3"] }],
    ["token_ids.0", { token_ids: [(2n ** 256n).toString()] }],
    ["requested_at", { requested_at: 0 }],
    ["requested_at", { requested_at: Number.MAX_SAFE_INTEGER + 1 }],
    ["deadline", { deadline: -5 }],
    ["metadata_api_url", { metadata_api_url: "nowhere" }],
    ["max_concurrency", { max_concurrency: 0 }],
    ["max_requests_per_second", { max_requests_per_second: -1 }],
  ])("names %s", (field, change) => {
    expect(() => checkRefresh(refreshOf(change))).toThrow(PoisonRecordError);
    expect(() => checkRefresh(refreshOf(change))).toThrow(`refresh.requested: ${field}: `);
  });

  it.each([
    ["check", { check: 0, emission: 1, refresh: refreshOf() }],
    ["emission", { check: 1, emission: 0, refresh: refreshOf() }],
    ["refresh.refresh_id", { check: 1, emission: 1, refresh: refreshOf({ refresh_id: "" }) }],
  ])("names %s of a watchdog record", (field, record) => {
    expect(() => checkWatchdog(record)).toThrow(`refresh.watchdog: ${field}: `);
  });
});

it("lets the largest token id and both policies pass", () => {
  checkRefresh(refreshOf({ token_ids: [(2n ** 256n - 1n).toString()], token_policy: "open" }));
  checkWatchdog({ check: 50, emission: 3, refresh: refreshOf() });
});
