import { expect, it } from "vitest";
import { LogScan } from "../../../support/log-scan.ts";
import { sampleMetadata } from "../../../support/metadata-api/behaviour.ts";

const lineOf = (fields: object) => JSON.stringify({ level: "info", service: "ingress", ...fields });
const finds = (line: string) => {
  const scan = new LogScan();
  scan.used("a used secret", "s3cret");
  scan.take("ingress", line);
  return scan.findings();
};

it.each([
  ["a signature", { reason: `0x${"aB".repeat(65)} is none` }],
  ["an API key", { reason: "amr_0123456789abcdef" }],
  ["an authorization header", { headers: { authorization: "Bearer dev-admin-token" } }],
  ["a query", { url: "/v1/metadata-refreshes?page_size=50" }],
  ["a query", { url: "https://api.example/1?a=1&token=2" }],
  ["a request's body", { body: '{"collection_address":"0x1","token_ids":["1"]}' }],
  ["a request's body", { body: { token_ids: ["1"] } }],
  ["a metadata body", { body: JSON.stringify(sampleMetadata("7")) }],
  ["user information of a URL", { reason: "connect redis://user:pass@redis:6379" }],
  ["a used secret", { reason: "the token s3cret" }],
])("finds %s", (what, fields) => {
  expect(finds(lineOf(fields))).toContainEqual(expect.stringContaining(`ingress logs ${what}: …`));
});

it("finds nothing in what the services log", () => {
  const fields = {
    requestId: "01a1fc5e-77a1-7187-b0e9-0460829f6814",
    collection_address: `0x${"ab".repeat(20)}`,
    route: "GET /v1/metadata-refreshes/:refresh_id",
    config: { REDIS_URL: "redis://[redacted]@redis:6379", ADMIN_TOKEN: "[redacted]" },
    message: "refresh.requested: token_ids.0: must be a canonical token id",
    query: "SELECT a FROM b WHERE c = ?",
  };
  expect(finds(lineOf(fields))).toEqual([]);
});
