import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseConfig } from "../../../../services/common/config/config.ts";
import { metadataApiSettings } from "../../../../services/common/config/settings.ts";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import { checkMetadataApiUrl } from "../../../../services/common/http/metadata-url.ts";

const schema = z.object(metadataApiSettings);

function policy(environment: Record<string, string> = {}) {
  const parsed = parseConfig(schema, environment);
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return addressPolicy(parsed.config);
}
const publicOnly = policy();

const rule = (url: string) => {
  const checked = checkMetadataApiUrl(url, publicOnly);
  return checked.ok ? `accepted as ${checked.url}` : checked.rule;
};

describe("the check of a metadata_api_url", () => {
  it.each([
    // The same loopback or internal address, spelled in ways that a URL parser understands.
    ["http://127.0.0.1/", "address"],
    ["http://127.1/", "address"],
    ["http://127.0.1/", "address"],
    ["http://0/", "address"],
    ["http://0.0.0.0/", "address"],
    ["http://0x7f.1/", "address"],
    ["http://0x7f000001/", "address"],
    ["http://2130706433/", "address"],
    ["http://017700000001/", "address"],
    ["http://0177.0.0.1/", "address"],
    ["http://0177.1/", "address"],
    ["http://127.0.0.1./", "address"],
    ["http://①②⑦.⓪.⓪.①/", "address"],
    ["http://127。0。0。1/", "address"],
    ["http://０x7f.1/", "address"],
    ["http://%31%32%37.0.0.1/", "address"],
    ["http:127.0.0.1/", "syntax"],
    ["http:\\\\127.0.0.1", "characters"],
    ["http://127.127.127.127/", "address"],
    ["http://2852039166/", "address"],
    ["http://0xa9fea9fe/", "address"],
    ["http://3232235521/", "address"],
    ["http://[::]/", "address"],
    ["http://[::1]/", "address"],
    ["http://[0:0:0:0:0:0:0:1]/", "address"],
    ["http://[::ffff:127.0.0.1]/", "address"],
    ["http://[::ffff:7f00:1]/", "address"],
    ["http://[::127.0.0.1]/", "address"],
    ["http://[::ffff:0:127.0.0.1]/", "address"],
    ["http://[64:ff9b::7f00:1]/", "address"],
    ["http://[2002:7f00:1::]/", "address"],
    ["http://localhost/", "address"],
    ["http://LOCALHOST/", "address"],
    ["http://localhost./", "address"],
    ["http://ip6-localhost/", "address"],
    ["http://a@127.0.0.1/", "credentials"],
    ["http://example.com%2f@127.0.0.1/", "credentials"],
    ["http://127.1.1.1:80\\@127.2.2.2:80/", "characters"],
    ["http://1.1.1.1 &@2.2.2.2# @3.3.3.3/", "characters"],
    ["http://127.0.0.1#.example.com", "fragment"],
    ["http://ex\tample.com/", "characters"],
    // No URL at all.
    ["http://256.1.1.1/", "syntax"],
    ["http://1.2.3.4.5/", "syntax"],
    ["http://0x100000000/", "syntax"],
    ["http://o177.0.0.1:65536/", "syntax"],
    ["http://127.0.0.1%00.example.com/", "syntax"],
    ["http://[fe80::1%25eth0]/", "syntax"],
    ["http://xn--/", "host"],
    ["https://", "syntax"],
    ["https:///tokens", "syntax"],
    ["api.example.com/tokens", "syntax"],
    ["", "syntax"],
  ])("refuses the spelling %s (%s)", (url, expected) => {
    expect(rule(url)).toBe(expected);
  });

  it.each([
    "file:///etc/passwd",
    "data:application/json,{}",
    "ftp://example.com/",
    "gopher://example.com/",
    "dict://example.com/",
    "sftp://example.com/",
    "tftp://example.com/",
    "ldap://example.com/",
    "jar:http://example.com!/",
    "netdoc:///etc/passwd",
    "javascript:alert(1)",
    "ws://example.com/",
    "blob:http://example.com/1",
  ])("refuses the scheme of %s", (url) => expect(rule(url)).toBe("scheme"));

  it.each([0, 22, 25, 6379, 9042, 9092, 8080])("refuses port %i unless it is allowed", (port) => {
    expect(rule(`http://api.example.com:${port}/`)).toBe("port");
  });

  it("lets the ports through that the operator allows, and with * every one but 0", () => {
    expect(checkMetadataApiUrl("http://api.example.com:8080/", policy({ METADATA_API_ALLOWED_PORTS: "443,8080" })).ok).toBe(true);
    expect(checkMetadataApiUrl("http://api.example.com/", policy({ METADATA_API_ALLOWED_PORTS: "443,8080" })).ok).toBe(false);
    expect(checkMetadataApiUrl("http://api.example.com:1/", policy({ METADATA_API_ALLOWED_PORTS: "*" })).ok).toBe(true);
    expect(checkMetadataApiUrl("http://api.example.com:0/", policy({ METADATA_API_ALLOWED_PORTS: "*" })).ok).toBe(false);
  });

  it.each([
    ["https://user:secret@api.example.com/", "credentials"],
    ["https://api.example.com/?key=1", "query"],
    ["https://api.example.com/tokens?", "query"],
    ["https://api.example.com/#", "fragment"],
    [" https://api.example.com/", "characters"],
    ["https://api.example.com/a b", "characters"],
    ["https://api.example.com/\u200bx", "characters"],
    ["https://api.example.com/\u0000", "characters"],
    [`https://${"a".repeat(64)}.example.com/`, "host"],
    [`https://${"a.".repeat(126)}example.com/`, "host"],
    ["https://api..example.com/", "host"],
    [`https://api.example.com/${"a".repeat(2_048)}`, "length"],
  ])("refuses %j (%s)", (url, expected) => {
    expect(rule(url)).toBe(expected);
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
