import { describe, expect, it } from "vitest";
import { z } from "zod";
import { flag, httpUrl, integer, list, parseConfig, summarize } from "../../../../services/common/config/config.ts";

const schema = z.object({
  PORT: integer(8080, 0, 65_535),
  BROKERS: list(["127.0.0.1:9092"]),
  ENABLED: flag(false),
  URL: httpUrl("http://127.0.0.1/"),
});

describe("parseConfig", () => {
  it("fills every default when nothing is set, and takes an empty value for not set", () => {
    expect(parseConfig(schema, { PORT: "" })).toEqual({
      ok: true,
      config: { PORT: 8080, BROKERS: ["127.0.0.1:9092"], ENABLED: false, URL: "http://127.0.0.1/" },
    });
  });

  it("reports every mistake at once, each with its variable", () => {
    const result = parseConfig(schema, { PORT: "70000", ENABLED: "yes", URL: "ftp://x/" });
    expect(result).toEqual({
      ok: false,
      problems: ["PORT: must be at most 65535", "ENABLED: must be true or false", "URL: must be an http or https URL"],
    });
  });

  it.each(["8o80", "1e3", "1.5", " 80", "0x50", "--1"])("refuses %j as a whole number", (text) => {
    expect(parseConfig(schema, { PORT: text })).toEqual({ ok: false, problems: ["PORT: must be a whole number"] });
  });

  it("splits lists at commas and drops blanks", () => {
    const result = parseConfig(schema, { BROKERS: " a:1 ,, b:2," });
    expect(result).toMatchObject({ ok: true, config: { BROKERS: ["a:1", "b:2"] } });
  });
});

describe("summarize", () => {
  it("shows that a secret is set, never what it is, and no credentials of a URL", () => {
    const summary = summarize({ ADMIN_TOKEN: "s3cret", REDIS_URL: "redis://user:pass@redis:6379", PORT: 1 });
    expect(summary).toEqual({ ADMIN_TOKEN: "[set]", REDIS_URL: "redis://[redacted]@redis:6379", PORT: 1 });
  });
});
