import type { Collection, Project } from "../../common/cassandra/registrations.ts";
import type { Answer } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { refuseFields } from "../../common/http/problems.ts";
import { parseQuery } from "../../common/http/query.ts";
import { type AcceptancePorts, accept, type Draft } from "../core/acceptance.ts";
import { recordOf } from "../core/record.ts";
import { maxBodyBytes, parseRefreshRequest } from "../core/refresh-request.ts";
import { type Found, findOwnCollection, type Registrations, readingProjectsOnce, refuseForeignKey } from "./ownership.ts";
import type { SignedRoute } from "./signed.ts";

export interface RequestingParts {
  readonly registrations: Registrations;
  readonly acceptance: AcceptancePorts;
  /** A refresh id that sorts by time. */
  newId(): string;
  encode(record: Draft["record"]): Buffer;
  nowMs(): number;
  readonly deadlineSeconds: number;
  /** Where the project has no number of its own. */
  readonly refreshesPerHour: number;
}

/** `POST /v1/metadata-refreshes`: specification section 4.1. */
export function requestingRoute(parts: RequestingParts): SignedRoute {
  return {
    method: "POST",
    path: "/v1/metadata-refreshes",
    handle: async (request, caller) => {
      const order = await readOrder(request);
      if (!order.ok) return order.refusal;
      const registrations = readingProjectsOnce(parts.registrations);
      const [owned, foreignKey] = await Promise.all([
        findOwnCollection(order.collectionAddress, caller, registrations),
        refuseForeignKey(caller, registrations),
      ]);
      if (foreignKey !== undefined) return foreignKey;
      if (!owned.ok) return owned.refusal;
      request.note({ projectId: owned.project.projectId });
      return carryOut(order, owned, { parts, request });
    },
  };
}

interface RefreshOrder {
  readonly collectionAddress: string;
  readonly tokenIds: readonly string[];
  readonly idempotencyKey: string | undefined;
}

async function readOrder(request: Incoming): Promise<Found<RefreshOrder>> {
  const query = parseQuery(request.search, []);
  if (!query.ok) return { ok: false, refusal: refuseFields(query.problems) };
  const [idempotencyKey, second] = request.headers("idempotency-key");
  // RFC draft httpapi-idempotency-key-header leaves the form open: anything that one line can show.
  if (second !== undefined || (idempotencyKey !== undefined && !/^[!-~]{1,255}$/.test(idempotencyKey))) {
    const problem = { field: "Idempotency-Key", rule: "form", message: "must be one value of 1 to 255 visible ASCII characters" };
    return { ok: false, refusal: refuseFields([problem]) };
  }
  const body = await request.readJson(maxBodyBytes);
  if (!body.ok) return body;
  const parsed = parseRefreshRequest(body.value);
  return parsed.ok ? { ok: true, ...parsed.request, idempotencyKey } : parsed;
}

async function carryOut(
  { tokenIds, idempotencyKey }: RefreshOrder,
  { collection, project }: { readonly collection: Collection; readonly project: Project },
  { parts, request }: { parts: RequestingParts; request: Incoming },
): Promise<Answer> {
  const nowMs = parts.nowMs();
  const { deadlineSeconds } = parts;
  const record = recordOf(parts.newId(), { collection, tokenIds }, { nowMs, deadlineSeconds });
  request.note({ refreshId: record.refresh_id });
  const refreshesPerHour = project.refreshesPerHour ?? parts.refreshesPerHour;
  return accept({ draft: { record, bytes: parts.encode(record) }, refreshesPerHour, idempotencyKey, nowMs }, parts.acceptance);
}
