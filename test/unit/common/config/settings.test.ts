import { expect, it } from "vitest";
import { parse as parseAggregator } from "../../../../services/aggregator/config.ts";
import { parse as parseFetcher } from "../../../../services/fetcher/config.ts";
import { parse as parseSplitter } from "../../../../services/splitter/config.ts";

it.each([
  ["splitter", parseSplitter],
  ["fetcher", parseFetcher],
  ["aggregator", parseAggregator],
])("refuses times with which the %s could act on a partition that it has lost, beside every other mistake", (_name, parse) => {
  const environment = {
    SESSION_TIMEOUT_MS: "6000",
    KAFKA_REQUEST_TIMEOUT_MS: "2001",
    HEARTBEAT_INTERVAL_MS: "2500",
    LOG_LEVEL: "loud",
  };
  const result = parse(environment);
  expect(result.ok).toBe(false);
  const problems = result.ok ? [] : result.problems;
  expect(problems.map((problem) => problem.split(":", 1)[0]).toSorted()).toEqual([
    "HEARTBEAT_INTERVAL_MS",
    "LOG_LEVEL",
    "SESSION_TIMEOUT_MS",
  ]);
  expect(parse({ SESSION_TIMEOUT_MS: "6000", KAFKA_REQUEST_TIMEOUT_MS: "2000", HEARTBEAT_INTERVAL_MS: "2000" }).ok).toBe(true);
});
