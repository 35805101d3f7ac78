import { z } from "zod";
import type { ApiKey } from "../../common/cassandra/registrations.ts";
import { refuse } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { pageParameters, pageSchema } from "../../common/http/paging.ts";
import { type ApiKeyStore, changeApiKey, createApiKeyFor, type Minted, revokeApiKey } from "../core/api-keys.ts";
import type { Bodies } from "../core/bodies.ts";
import type { ListSource } from "../core/listing.ts";
import { apiKeySchema, viewOfApiKey } from "../core/views.ts";
import { answerList, readListQuery } from "./lists.ts";
import { readBody, readProjectId, unknown } from "./requests.ts";
import type { AdminRoute, Audit } from "./route.ts";

export interface ApiKeyRoutesOptions {
  readonly store: ApiKeyStore;
  readonly apiKeysOfProject: (projectId: number) => ListSource<ApiKey>;
  /** A new key of fresh chance. */
  readonly mint: () => Minted;
  readonly bodies: Bodies;
  readonly audit: Audit;
  readonly nowMicros: () => number;
}

const createdSchema = apiKeySchema.extend({
  api_key: z.string().meta({ description: "The key. Shown here and never again: only its SHA-256 is stored." }),
});

export function apiKeyRoutes(options: ApiKeyRoutesOptions): AdminRoute[] {
  const { bodies } = options;
  const keys = "/v1/projects/:project_id/api-keys";
  return [
    {
      method: "POST",
      path: keys,
      document: {
        summary: "Create an API key for a project",
        body: bodies.newApiKey,
        answers: { 201: { description: "Created.", schema: createdSchema } },
        refusals: [404],
      },
      handle: (request) => create(options, request),
    },
    {
      method: "GET",
      path: keys,
      document: {
        summary: "List the API keys of a project, revoked ones too",
        query: pageParameters,
        answers: { 200: { description: "A page, oldest first.", schema: pageSchema(apiKeySchema) } },
        refusals: [404],
      },
      handle: (request) => list(options, request),
    },
    {
      method: "GET",
      path: `${keys}/:key_id`,
      document: {
        summary: "Get an API key, without the key",
        answers: { 200: { description: "The API key.", schema: apiKeySchema } },
        refusals: [404],
      },
      handle: (request) => get(options, request),
    },
    {
      method: "PATCH",
      path: `${keys}/:key_id`,
      document: {
        summary: "Change the name or the rate of an API key",
        body: bodies.apiKeyChange,
        answers: { 200: { description: "The API key as it is now.", schema: apiKeySchema } },
        refusals: [404, 409],
      },
      handle: (request) => change(options, request),
    },
    {
      method: "DELETE",
      path: `${keys}/:key_id`,
      document: {
        summary: "Revoke an API key for good; it stays in the list. The refresh API knows within 10 seconds",
        answers: { 204: { description: "Revoked, now or before." } },
        refusals: [404],
      },
      handle: (request) => revoke(options, request),
    },
  ];
}

async function create({ store, mint, bodies, audit }: ApiKeyRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const body = await readBody(request, bodies.newApiKey);
  if (!body.ok) return body.refusal;
  const created = await createApiKeyFor(store, { projectId: projectId.value, ...body.value }, mint());
  if (created === "unknown_project") return unknown("project");
  audit("registry.api_key_created", { requestId: request.id, projectId: projectId.value, keyId: created.key.keyId });
  return { status: 201, body: { ...viewOfApiKey(created.key), api_key: created.apiKey } };
}

async function list({ store, apiKeysOfProject }: ApiKeyRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const query = readListQuery(request);
  if (!query.ok) return query.refusal;
  if ((await store.readProject(projectId.value)) === undefined) return unknown("project");
  const source = apiKeysOfProject(projectId.value);
  const name = `API keys of ${projectId.value}`;
  return answerList({ name, key: /^[0-9a-f-]{36}$/, source, view: viewOfApiKey }, query.value);
}

async function get({ store }: ApiKeyRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const key = await store.read(projectId.value, request.params.key_id ?? "");
  return key === undefined ? unknown("API key") : { status: 200, body: viewOfApiKey(key) };
}

async function change({ store, bodies, audit }: ApiKeyRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const body = await readBody(request, bodies.apiKeyChange);
  if (!body.ok) return body.refusal;
  const place = { projectId: projectId.value, keyId: request.params.key_id ?? "" };
  const key = await changeApiKey(store, place, body.value);
  if (key === "unknown_api_key") return unknown("API key");
  if (key === "revoked") return refuse(409, "conflict", "the API key is revoked");
  const fields = Object.keys(body.value).join(",");
  audit("registry.api_key_changed", { requestId: request.id, projectId: key.projectId, keyId: key.keyId, fields });
  return { status: 200, body: viewOfApiKey(key) };
}

async function revoke({ store, audit, nowMicros }: ApiKeyRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const place = { projectId: projectId.value, keyId: request.params.key_id ?? "" };
  const outcome = await revokeApiKey(store, place, nowMicros());
  if (outcome === "unknown_api_key") return unknown("API key");
  if (outcome === "revoked") audit("registry.api_key_revoked", { requestId: request.id, ...place });
  return { status: 204 };
}
