import { describe, expect, it } from "vitest";
import { parse } from "../../../services/aggregator/config.ts";

describe("the aggregator's configuration", () => {
  it("fits the local stack when nothing is set", () => {
    expect(parse({})).toMatchObject({ ok: true, config: { OPERATIONS_PORT: 9104, GROUP_PREFIX: "metadata-refresh" } });
  });

  it("names every mistake at once", () => {
    const parsed = parse({ PROGRESS_CACHE_COUNT: "0", RETENTION_SECONDS: "1" });
    expect(parsed).toMatchObject({ ok: false });
    const problems = parsed.ok ? [] : parsed.problems.map((problem) => problem.split(":")[0]);
    expect(problems.toSorted()).toEqual(["PROGRESS_CACHE_COUNT", "RETENTION_SECONDS"]);
  });
});
