import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseConfig } from "../../../../services/common/config/config.ts";
import { metadataApiSettings } from "../../../../services/common/config/settings.ts";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import { checkMetadataApiUrl, type MetadataUrlRule } from "../../../../services/common/http/metadata-url.ts";
import { parseFields } from "../../../../services/common/http/problems.ts";
import { createBodies } from "../../../../services/registry/core/bodies.ts";
import { refusedUrls } from "../../../support/metadata-api/forbidden-places.ts";

const schema = z.object(metadataApiSettings);

function policy(environment: Record<string, string> = {}) {
  const parsed = parseConfig(schema, environment);
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return addressPolicy(parsed.config);
}
const publicOnly = policy();

/** What the owner of a URL that is refused reads: a sentence for each rule. */
const messages: Readonly<Record<MetadataUrlRule, RegExp>> = {
  characters: /^must not contain blanks, control characters or backslashes$/,
  length: /^must have at most 2048 characters$/,
  syntax: /^must be a URL such as https:\/\/api\.example\.com\/tokens$/,
  scheme: /^must start with https:\/\/ or http:\/\/$/,
  credentials: /^must not contain a user name or password$/,
  query: /^must not have a query: the token id is added to its path$/,
  fragment: /^must not have a fragment$/,
  host: /^must name a host of at most 253 characters, 63 in each label$/,
  port: /^must use an allowed port, not \d+$/,
  address: /^must lead to a public address: \S+ is none \([a-z0-9_]+\)$/,
};

describe("the check of a metadata_api_url", () => {
  it.each(refusedUrls)("refuses %j (%s), and says why", (url, rule) => {
    expect(checkMetadataApiUrl(url, publicOnly)).toMatchObject({
      ok: false,
      rule,
      message: expect.stringMatching(messages[rule]),
    });
  });

  it("is what a registration and a change of it are refused by, with field, rule and message", () => {
    const bodies = createBodies((text) => checkMetadataApiUrl(text, publicOnly));
    const collection_address = `0x${"ab".repeat(20)}`;
    for (const [metadata_api_url, rule] of refusedUrls) {
      const refusal = [{ field: "metadata_api_url", rule, message: expect.stringMatching(messages[rule]) }];
      const created = parseFields(bodies.newCollection, { collection_address, metadata_api_url });
      expect([metadata_api_url, created.ok || created.problems]).toEqual([metadata_api_url, refusal]);
      const changed = parseFields(bodies.collectionChange, { metadata_api_url });
      expect([metadata_api_url, changed.ok || changed.problems]).toEqual([metadata_api_url, refusal]);
    }
  });

  it("lets the ports through that the operator allows, and with * every one but 0", () => {
    expect(checkMetadataApiUrl("http://api.example.com:8080/", policy({ METADATA_API_ALLOWED_PORTS: "443,8080" })).ok).toBe(true);
    expect(checkMetadataApiUrl("http://api.example.com/", policy({ METADATA_API_ALLOWED_PORTS: "443,8080" })).ok).toBe(false);
    expect(checkMetadataApiUrl("http://api.example.com:1/", policy({ METADATA_API_ALLOWED_PORTS: "*" })).ok).toBe(true);
    expect(checkMetadataApiUrl("http://api.example.com:0/", policy({ METADATA_API_ALLOWED_PORTS: "*" })).ok).toBe(false);
  });

  it.each([
    ["https://api.example.com", "https://api.example.com"],
    ["https://api.example.com/", "https://api.example.com"],
    ["HTTPS://API.Example.com:443/Tokens/", "https://api.example.com/Tokens"],
    ["http://api.example.com:80/v1//", "http://api.example.com/v1"],
    ["https://api.example.com/a/../b", "https://api.example.com/b"],
    ["https://8.8.8.8/x", "https://8.8.8.8/x"],
    ["https://[2606:4700::1111]/x", "https://[2606:4700::1111]/x"],
    ["https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"],
    // What such a name leads to is checked when it is resolved.
    ["https://metadata.google.internal/", "https://metadata.google.internal"],
  ])("accepts %s as %s", (url, expected) => {
    expect(checkMetadataApiUrl(url, publicOnly)).toEqual({ ok: true, url: expected });
  });

  it("accepts loopback, by address and by name, where the operator allows its range", () => {
    const local = policy({ METADATA_API_ALLOWED_RANGES: "127.0.0.0/8", METADATA_API_ALLOWED_PORTS: "*" });
    expect(checkMetadataApiUrl("http://127.0.0.1:8000/t", local).ok).toBe(true);
    expect(checkMetadataApiUrl("http://localhost:8000/t", local).ok).toBe(true);
    expect(checkMetadataApiUrl("http://[::1]:8000/t", local).ok).toBe(false);
  });

  it("tells which rule is broken, in words and for an address with the reason", () => {
    expect(checkMetadataApiUrl("http://10.0.0.1/", publicOnly)).toEqual({
      ok: false,
      rule: "address",
      block: "private_range",
      message: "must lead to a public address: 10.0.0.1 is none (private_range)",
    });
  });

  it.each([
    [{ METADATA_API_ALLOWED_RANGES: "10/8" }, "METADATA_API_ALLOWED_RANGES"],
    [{ METADATA_API_ALLOWED_RANGES: "127.0.0.1" }, "METADATA_API_ALLOWED_RANGES"],
    [{ METADATA_API_ALLOWED_PORTS: "0" }, "METADATA_API_ALLOWED_PORTS"],
    [{ METADATA_API_ALLOWED_PORTS: "65536" }, "METADATA_API_ALLOWED_PORTS"],
  ])("reports the setting %j as a mistake", (environment, name) => {
    const parsed = parseConfig(schema, environment);
    expect(!parsed.ok && parsed.problems[0]).toContain(name);
  });
});
