import { describe, expect, it } from "vitest";
import { parse } from "../../../services/fetcher/config.ts";

describe("the fetcher's configuration", () => {
  it("has defaults that call nothing but the public internet, within the specification's limits", () => {
    const parsed = parse({});
    expect(parsed.ok && parsed.config).toMatchObject({
      OPERATIONS_PORT: 9103,
      METADATA_API_ALLOWED_RANGES: [],
      METADATA_API_ALLOWED_PORTS: ["80", "443"],
      METADATA_API_TIMEOUT_MS: 3_000,
      MAX_ATTEMPTS: 3,
      BODY_CAP_BYTES: 262_144,
      WINDOW_RECORDS: 20_000,
      WINDOW_BYTES: 67_108_864,
    });
  });

  it.each([
    { METADATA_API_TIMEOUT_MS: "3001" },
    { MAX_ATTEMPTS: "4" },
    { MAX_ATTEMPTS: "0" },
    { FETCH_CONCURRENCY_PER_HOST: "0" },
    { METADATA_API_DNS_SERVERS: "ns.example.com" },
    { METADATA_API_ALLOWED_RANGES: "everything" },
  ])("refuses %o: no setting goes beyond the specification", (environment) => {
    const parsed = parse(environment);
    expect(!parsed.ok && parsed.problems.join()).toContain(Object.keys(environment)[0]);
  });
});
