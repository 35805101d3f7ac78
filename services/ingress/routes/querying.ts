import { type Answer, refuse } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { pageOf, parsePage } from "../../common/http/paging.ts";
import { refuseFields } from "../../common/http/problems.ts";
import { parseQuery } from "../../common/http/query.ts";
import { addressForm, parseAddress } from "../../common/messages/address.ts";
import { type ListedRefresh, nextRefreshes, type ReadMonth, refreshPlaceSchema } from "../core/refresh-list.ts";
import {
  errorPlaceSchema,
  errorView,
  type RefreshFacts,
  type RefreshProgress,
  refreshItem,
  refreshView,
  type TokenError,
} from "../core/views.ts";
import { type Found, findOwnCollection, type Registrations, readingProjectsOnce, refuseForeignKey } from "./ownership.ts";
import type { SignedCaller, SignedRoute } from "./signed.ts";

export interface QueryingParts {
  readonly registrations: Registrations;
  readFacts(refreshId: string): Promise<RefreshFacts | undefined>;
  readProgress(refreshId: string): Promise<RefreshProgress | undefined>;
  readManyProgress(refreshIds: readonly string[]): Promise<readonly (RefreshProgress | undefined)[]>;
  readErrors(
    refreshId: string,
    page: { before: { createdAt: number; ordinal: number } | undefined; limit: number },
  ): Promise<readonly TokenError[]>;
  /** Of the list of a project, or of one of its collections. */
  monthReader(collectionAddress: string | undefined): ReadMonth;
  nowMs(): number;
  readonly retentionSeconds: number;
}

/** The three GET endpoints: specification sections 4.2 to 4.4. */
export function queryingRoutes(parts: QueryingParts): SignedRoute[] {
  return [
    { method: "GET", path: "/v1/metadata-refreshes", handle: (request, caller) => listRefreshes(request, caller, parts) },
    {
      method: "GET",
      path: "/v1/metadata-refreshes/:refresh_id",
      handle: (request, caller) => getRefresh(request, caller, parts),
    },
    {
      method: "GET",
      path: "/v1/metadata-refreshes/:refresh_id/errors",
      handle: (request, caller) => listErrors(request, caller, parts),
    },
  ];
}

async function getRefresh(request: Incoming, caller: SignedCaller, parts: QueryingParts): Promise<Answer> {
  const query = parseQuery(request.search, []);
  if (!query.ok) return refuseFields(query.problems);
  const found = await findRefresh(request, caller, parts);
  return found.ok ? { status: 200, body: refreshView(found.facts, found.progress) } : found.refusal;
}

async function listErrors(request: Incoming, caller: SignedCaller, parts: QueryingParts): Promise<Answer> {
  const query = parseQuery(request.search, ["page_size", "cursor"]);
  if (!query.ok) return refuseFields(query.problems);
  const found = await findRefresh(request, caller, parts);
  if (!found.ok) return found.refusal;
  const { refreshId } = found.facts;
  const scope = `errors/${refreshId}`;
  const asked = parsePage(query.values, { scope, place: errorPlaceSchema });
  if (!asked.ok) return refuseFields(asked.problems);
  const before = asked.page.behind && { createdAt: asked.page.behind[0], ordinal: asked.page.behind[1] };
  const errors = await parts.readErrors(refreshId, { before, limit: asked.page.size + 1 });
  const page = pageOf(errors, asked.page, { scope, placeOf: (error) => [error.createdAt, error.ordinal] });
  return { status: 200, body: { ...page, result: page.result.map(errorView) } };
}

async function listRefreshes(request: Incoming, caller: SignedCaller, parts: QueryingParts): Promise<Answer> {
  const query = parseQuery(request.search, ["collection_address", "page_size", "cursor"]);
  if (!query.ok) return refuseFields(query.problems);
  const filter = await readFilter(query.values.collection_address, caller, parts);
  if (!filter.ok) return filter.refusal;
  const { collectionAddress, projectIds } = filter;
  // The signer is part of the list's name: another owner's list is another list.
  const scope = `refreshes/${caller.signer}/${collectionAddress ?? "all"}`;
  const asked = parsePage(query.values, { scope, place: refreshPlaceSchema });
  if (!asked.ok) return refuseFields(asked.problems);
  const found = await nextRefreshes({
    projectIds,
    before: asked.page.behind && { createdAt: asked.page.behind[0], refreshId: asked.page.behind[1] },
    limit: asked.page.size + 1,
    nowMicros: parts.nowMs() * 1000,
    retentionSeconds: parts.retentionSeconds,
    read: parts.monthReader(collectionAddress),
  });
  const page = pageOf(found, asked.page, { scope, placeOf: ({ createdAt, refreshId }) => [createdAt, refreshId] });
  return { status: 200, body: { ...page, result: await itemsOf(page.result, parts) } };
}

/**
 * Somebody else's refresh is answered as one that does not exist, and as fast: both take the same reads. The owner is the one the
 * project has now.
 */
async function findRefresh(
  request: Incoming,
  caller: SignedCaller,
  parts: QueryingParts,
): Promise<Found<{ facts: RefreshFacts; progress: RefreshProgress | undefined }>> {
  const refreshId = request.params.refresh_id?.toLowerCase() ?? "";
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(refreshId)) {
    return { ok: false, refusal: refuseFields([{ field: "refresh_id", rule: "uuid", message: "must be a UUID" }]) };
  }
  request.note({ refreshId });
  const registrations = readingProjectsOnce(parts.registrations);
  const [facts, progress, foreignKey] = await Promise.all([
    parts.readFacts(refreshId),
    parts.readProgress(refreshId),
    refuseForeignKey(caller, registrations),
  ]);
  if (foreignKey !== undefined) return { ok: false, refusal: foreignKey };
  const project = await registrations.readProject(facts?.projectId ?? noProject);
  if (facts === undefined || project?.ownerAddress !== caller.signer) {
    return { ok: false, refusal: refuse(404, "not_found", "there is no such refresh") };
  }
  request.note({ projectId: facts.projectId });
  return { ok: true, facts, progress };
}

/** Project ids begin at 1. */
const noProject = 0;

async function readFilter(
  text: string | undefined,
  caller: SignedCaller,
  parts: QueryingParts,
): Promise<Found<{ collectionAddress: string | undefined; projectIds: readonly number[] }>> {
  const collectionAddress = text === undefined ? undefined : parseAddress(text);
  if (text !== undefined && collectionAddress === undefined) {
    const problem = { field: "collection_address", rule: "address", message: addressForm };
    return { ok: false, refusal: refuseFields([problem]) };
  }
  const registrations = readingProjectsOnce(parts.registrations);
  const foreignKey = await refuseForeignKey(caller, registrations);
  if (foreignKey !== undefined) return { ok: false, refusal: foreignKey };
  if (collectionAddress === undefined) {
    const projects = await registrations.readProjectsOfOwner(caller.signer);
    return { ok: true, collectionAddress, projectIds: projects.map(({ projectId }) => projectId) };
  }
  const owned = await findOwnCollection(collectionAddress, caller, registrations);
  return owned.ok ? { ok: true, collectionAddress, projectIds: [owned.project.projectId] } : owned;
}

async function itemsOf(listed: readonly ListedRefresh[], parts: QueryingParts) {
  const progress = await parts.readManyProgress(listed.map(({ refreshId }) => refreshId));
  return listed.map((refresh, index) => refreshItem({ ...refresh, requestedAt: refresh.createdAt }, progress[index]));
}
