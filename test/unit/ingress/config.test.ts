import { expect, it } from "vitest";
import { parse } from "../../../services/ingress/config.ts";

it("needs nothing to be set", () => {
  expect(parse({})).toMatchObject({
    ok: true,
    config: {
      HTTP_PORT: 8080,
      OPERATIONS_PORT: 9101,
      HTTP_MAX_CONNECTIONS: 4_096,
      HTTP_MAX_CONNECTIONS_PER_ADDRESS: 256,
      HTTP_MAX_REQUESTS_UNDER_WAY: 1_024,
      HTTP_MAX_BODY_BYTES_HELD: 33_554_432,
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

it("refuses room for bodies in which not even one of the largest fits", () => {
  expect(parse({ HTTP_MAX_BODY_BYTES_HELD: "1000" })).toEqual({
    ok: false,
    problems: ["HTTP_MAX_BODY_BYTES_HELD: must be at least 131072"],
  });
});
