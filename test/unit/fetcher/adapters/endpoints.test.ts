import { describe, expect, it } from "vitest";
import { addressPolicy } from "../../../../services/common/http/address-guard.ts";
import { createEndpoints } from "../../../../services/fetcher/adapters/endpoints.ts";

const endpointOf = createEndpoints(addressPolicy({ METADATA_API_ALLOWED_RANGES: [], METADATA_API_ALLOWED_PORTS: ["80", "443"] }));

describe("an endpoint", () => {
  it("has the origin that its calls are counted by, and the canonical URL", () => {
    const endpoint = { ok: true, origin: "https://api.example.com", url: "https://api.example.com/tokens" };
    expect(endpointOf("https://API.example.com:443/tokens/")).toEqual(endpoint);
    // Remembered.
    expect(endpointOf("https://API.example.com:443/tokens/")).toEqual(endpoint);
  });

  it.each([
    ["http://10.0.0.1/", { ok: false, detail: "blocked_address", block: "private_range" }],
    ["http://api.example.com:6379/", { ok: false, detail: "blocked_address" }],
    ["file:///etc/passwd", { ok: false, detail: "invalid_url" }],
    ["https://api.example.com/?key=1", { ok: false, detail: "invalid_url" }],
    ["", { ok: false, detail: "invalid_url" }],
  ])("is refused for %s", (url, expected) => {
    expect(endpointOf(url)).toEqual(expected);
  });
});
