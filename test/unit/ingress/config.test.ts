import { expect, it } from "vitest";
import { parse } from "../../../services/ingress/config.ts";

it("needs nothing to be set", () => {
  expect(parse({})).toMatchObject({
    ok: true,
    config: {
      HTTP_PORT: 8080,
      OPERATIONS_PORT: 9101,
      TRUSTED_PROXY_COUNT: 0,
      SIGNATURE_TOLERANCE_SECONDS: 300,
      REFRESHES_PER_HOUR: 20,
      REQUESTS_PER_SECOND_PER_IP: 5,
      REFRESH_DEADLINE_SECONDS: 172_800,
      IDEMPOTENCY_TTL_SECONDS: 86_400,
    },
  });
});

it("refuses keys that outlive their refresh's deadline: a repetition would publish a refresh that is over", () => {
  expect(parse({ REFRESH_DEADLINE_SECONDS: "3600" })).toEqual({
    ok: false,
    problems: ["IDEMPOTENCY_TTL_SECONDS: must be at most REFRESH_DEADLINE_SECONDS"],
  });
});
