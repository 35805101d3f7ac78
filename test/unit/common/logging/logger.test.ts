import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createApiKey } from "../../../../services/common/http/api-key.ts";
import { createLogger, type Logger } from "../../../../services/common/logging/logger.ts";

function logged(write: (logger: Logger) => void): string {
  const lines: string[] = [];
  write(createLogger("ingress", "info", { write: (line: string) => void lines.push(line) }));
  return lines.join("");
}

it("writes one JSON line per event, with its name, service and ids", () => {
  const line = logged((logger) => logger.child({ refresh_id: "r1" }).info({ ms: 3 }, "refresh.accepted"));
  expect(JSON.parse(line)).toMatchObject({
    level: "info",
    service: "ingress",
    event: "refresh.accepted",
    refresh_id: "r1",
    ms: 3,
  });
  expect(line.split("\n")).toHaveLength(2);
});

it("leaves numbers, ids and the texts of errors as they are", () => {
  const error = new TypeError("x is not a function", { cause: new Error("behind it") });
  const fields = { err: error, at: new Date(0), offset: 2n ** 60n, list: [1, null, true], query: "WHERE a = ? AND b = ?" };
  expect(JSON.parse(logged((logger) => logger.warn(fields, "batch.failed")))).toMatchObject({
    err: {
      type: "TypeError",
      message: expect.stringContaining("x is not a function"),
      stack: expect.stringContaining("behind it"),
    },
    at: "1970-01-01T00:00:00.000Z",
    offset: "1152921504606846976",
    list: [1, null, true],
    query: "WHERE a = ? AND b = ?",
  });
});

describe("no secret is shown:", () => {
  it.each(["authorization", "Authorization", "x-api-key", "x-svc-eth-signature", "api_key", "password", "admin_token"])(
    "%s, wherever it stands",
    (key) => {
      const hidden = { [key]: "s3cret" };
      const deep = { response: { config: [{ headers: hidden }] } };
      const error = Object.assign(new Error("refused"), deep);
      const text = logged((logger) => logger.info({ ...hidden, ...deep, err: error }, "request.answered"));
      expect(text).not.toContain("s3cret");
      expect(text.match(/\[redacted\]/g)).toHaveLength(3);
    },
  );

  const { apiKey } = createApiKey(new Uint8Array(32).fill(0xab));
  const signature = `0x${"ab".repeat(64)}1B`;
  it.each([
    ["L3 an API key", `the key ${apiKey} is unknown`, apiKey],
    ["L3 the beginning of an API key", `the key ${apiKey.slice(0, 20)}… is unknown`, apiKey.slice(4, 20)],
    ["L4 a signature", `0x${"AB".repeat(65)}`, "AB".repeat(20)],
    ["L4 a signature in a sentence", `${signature} is no signature`, "ab".repeat(20)],
    ["an authorization header", "authorization: Bearer dev-admin-token", "dev-admin-token"],
    ["L5 a URL's user information", "connect redis://user:pa@ss@redis:6379/0 failed", "ss@"],
    ["L5 a URL's user name alone", "GET https://t0ken@example.com/1", "t0ken"],
    ["L5 the query of a URL", "GET https://example.com/1?token=t0ken&a=b failed", "t0ken"],
    ["L5 both", "GET https://u:p4ss@example.com/1?token=t0ken", "p4ss"],
    ["L5 a query whose first part has no value", "GET https://example.com/1?flag&token=t0ken", "t0ken"],
    ["L5 the query of a path", "GET /v1/things?cursor=t0ken", "t0ken"],
  ])("%s, in a field, a list, an error and a child's binding", (_name, text, secret) => {
    const places: Record<string, unknown>[] = [{ reason: text }, { list: [text] }, { err: new Error(text) }];
    for (const fields of places) {
      const line = logged((logger) => logger.error(fields, "request.failed"));
      expect(line).not.toContain(secret);
      expect(JSON.stringify(JSON.parse(line))).toContain("[redacted]");
    }
    expect(logged((logger) => logger.child({ url: text }).info("fetch.attempted"))).not.toContain(secret);
  });

  it("bytes are counted, not shown", () => {
    const line = logged((logger) => logger.info({ body: Buffer.from("secret body") }, "fetch.attempted"));
    expect(JSON.parse(line)).toMatchObject({ body: "[11 bytes]" });
  });
});

describe("foreign text", () => {
  it.each([
    ["L1 a line end", "1\r\nforged line"],
    ["L1 the line ends of Unicode", "1\u2028forged\u2029line\u0085"],
    ["L2 an ANSI escape", "\u001b[31mred\u001b[0m"],
    ["L2 an ANSI escape of one character", "\u009b31mred"],
    ["L2 a change of the direction of writing", "\u202egnp.exe\u2066"],
    ["L2 a null and a delete", "\u0000\u007f"],
  ])("stays in its field of its one line, without effect on a terminal: %s", (_name, text) => {
    const fields = { url: `https://example.com/${text}`, token_id: text, response_body: text, err: new Error(text) };
    const line = logged((logger) => logger.info(fields, "fetch.attempted"));
    const obeyed = [...line.trimEnd()].filter((character) => /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(character));
    expect(obeyed).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({ token_id: text, event: "fetch.attempted" });
  });

  it("L8 of 100 KB is cut, wherever it stands", () => {
    const text = "x".repeat(100_000);
    const line = logged((logger) =>
      logger.error({ text, list: [text], deep: { deeper: text }, err: new Error(text) }, "request.failed"),
    );
    expect(line.length).toBeLessThan(40_000);
    expect(JSON.parse(line)).toMatchObject({ text: expect.stringMatching(/^x{4096}… 100000 characters$/) });
  });

  it("L8 in lists of a hundred thousand, and in what contains itself, is cut too", () => {
    const cycle: Record<string, unknown> = { list: Array.from({ length: 100_000 }, (_, index) => index) };
    cycle.self = cycle;
    const line = logged((logger) => logger.info(cycle, "fetch.attempted"));
    expect(line.length).toBeLessThan(10_000);
    expect(line).toContain("… 100000 entries");
  });

  it("of any kind leaves one line of JSON", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withTypedArray: true, withNullPrototype: true }), (value) => {
        const line = logged((logger) =>
          logger.info({ value, err: new Error(String(JSON.stringify(`${typeof value}`))) }, "any.event"),
        );
        expect(line.split("\n")).toHaveLength(2);
        expect(JSON.parse(line)).toMatchObject({ event: "any.event", service: "ingress" });
      }),
    );
  });
});
