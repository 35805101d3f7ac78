import { expect, it } from "vitest";
import { createLogger } from "../../../../services/common/logging/logger.ts";

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
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

it.each(["authorization", "x-api-key", "x-svc-eth-signature", "api_key", "password", "admin_token"])("never shows %s", (key) => {
  const text = logged((logger) => logger.info({ [key]: "s3cret", headers: { [key]: "s3cret" } }, "request.answered"));
  expect(text).not.toContain("s3cret");
  expect(text).toContain("[redacted]");
});

it("keeps line breaks and escapes of foreign text inside one JSON line", () => {
  const line = logged((logger) => logger.info({ token_id: "1\r\n\u001b[31m{}" }, "fetch.attempted"));
  const controls = [...line.trimEnd()].filter((character) => character < " ");
  expect(controls).toEqual([]);
});
