import { createHash, timingSafeEqual } from "node:crypto";
import { refuse } from "../../common/http/answer.ts";
import type { Admission } from "../../common/http/app.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { openApiRoute } from "./openapi.ts";
import type { Caller } from "./route.ts";

/**
 * Lets the bearer of the admin token in, and anybody to the description of the interface. Hashes are compared: they have one
 * length, and the time it takes says nothing of the token.
 */
export function admitBearer(adminToken: string): (request: Incoming) => Promise<Admission<Caller>> {
  const expected = digest(adminToken);
  return async (request) => {
    if (request.route === openApiRoute) return { ok: true, caller: "anybody" };
    const [header = "", ...more] = request.headers("authorization");
    const [, token] = /^Bearer ([!-~]+)$/i.exec(header) ?? [];
    const known = more.length === 0 && token !== undefined && timingSafeEqual(digest(token), expected);
    return known ? { ok: true, caller: "admin" } : { ok: false, refusal };
  };
}

const refusal = refuse(401, "unauthorized", "the admin token is missing or wrong: Authorization: Bearer <token>", {
  headers: { "www-authenticate": "Bearer" },
});

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
