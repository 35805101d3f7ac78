import { describe, expect, it } from "vitest";
import { parse } from "../../../services/registry/config.ts";

const strong = "k".repeat(32);

describe("the admin token", () => {
  it("has a default for development", () => {
    expect(parse({})).toMatchObject({
      ok: true,
      config: { ADMIN_TOKEN: "dev-admin-token", HTTP_PORT: 8090, OPERATIONS_PORT: 9105 },
    });
  });

  it("may be anything strong in production", () => {
    expect(parse({ NODE_ENV: "production", ADMIN_TOKEN: strong })).toMatchObject({ ok: true, config: { ADMIN_TOKEN: strong } });
  });

  it.each([
    ["is the default", {}],
    ["is the default, spelt out", { ADMIN_TOKEN: "dev-admin-token" }],
    ["is empty", { ADMIN_TOKEN: "" }],
    ["is short", { ADMIN_TOKEN: strong.slice(1) }],
    ["cannot travel in a header", { ADMIN_TOKEN: `${strong}\n` }],
  ])("is refused in production when it %s", (_what, environment) => {
    const parsed = parse({ NODE_ENV: "production", ...environment });
    expect(parsed.ok ? [] : parsed.problems.map((problem) => problem.split(":")[0])).toEqual(["ADMIN_TOKEN"]);
  });

  it("is named beside every other mistake, not after they are corrected", () => {
    const parsed = parse({ NODE_ENV: "production", HTTP_PORT: "x", CASSANDRA_KEYSPACE: "Bad", LOG_LEVEL: "loud" });
    const names = parsed.ok ? [] : parsed.problems.map((problem) => problem.split(":")[0]);
    expect(names.sort()).toEqual(["ADMIN_TOKEN", "CASSANDRA_KEYSPACE", "HTTP_PORT", "LOG_LEVEL"]);
  });

  it("is in no message", () => {
    const parsed = parse({ NODE_ENV: "production", ADMIN_TOKEN: "short-secret" });
    expect(parsed.ok ? "" : parsed.problems.join()).not.toContain("short-secret");
  });
});
