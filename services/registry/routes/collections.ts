import type { Collection } from "../../common/cassandra/registrations.ts";
import { type Answer, refuse } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { pageParameters, pageSchema } from "../../common/http/paging.ts";
import type { Bodies } from "../core/bodies.ts";
import { type CollectionStore, changeCollection, registerCollection } from "../core/collections.ts";
import type { ListSource } from "../core/listing.ts";
import { collectionSchema, viewOfCollection } from "../core/views.ts";
import { answerList, readListQuery } from "./lists.ts";
import { readBody, readCollectionAddress, readProjectId, unknown } from "./requests.ts";
import type { AdminRoute, Audit } from "./route.ts";

export interface CollectionRoutesOptions {
  readonly store: CollectionStore;
  readonly collectionsOfProject: (projectId: number) => ListSource<Collection>;
  readonly bodies: Bodies;
  readonly audit: Audit;
  readonly nowMicros: () => number;
}

export function collectionRoutes(options: CollectionRoutesOptions): AdminRoute[] {
  const { bodies } = options;
  return [
    {
      method: "POST",
      path: "/v1/projects/:project_id/collections",
      document: {
        summary: "Register a collection: it belongs to one project for good",
        body: bodies.newCollection,
        answers: {
          200: { description: "Registered before, by this project and with these settings.", schema: collectionSchema },
          201: { description: "Registered.", schema: collectionSchema },
        },
        refusals: [404, 409],
      },
      handle: (request) => register(options, request),
    },
    {
      method: "GET",
      path: "/v1/projects/:project_id/collections",
      document: {
        summary: "List the collections of a project",
        query: pageParameters,
        answers: { 200: { description: "A page, by address.", schema: pageSchema(collectionSchema) } },
        refusals: [404],
      },
      handle: (request) => list(options, request),
    },
    {
      method: "GET",
      path: "/v1/collections/:collection_address",
      document: {
        summary: "Get a collection",
        answers: { 200: { description: "The collection.", schema: collectionSchema } },
        refusals: [404],
      },
      handle: (request) => get(options, request),
    },
    {
      method: "PATCH",
      path: "/v1/collections/:collection_address",
      document: {
        summary: "Change a collection: refreshes accepted before keep the settings they were accepted with",
        body: bodies.collectionChange,
        answers: { 200: { description: "The collection as it is now.", schema: collectionSchema } },
        refusals: [404],
      },
      handle: (request) => change(options, request),
    },
  ];
}

async function register({ store, bodies, audit, nowMicros }: CollectionRoutesOptions, request: Incoming): Promise<Answer> {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const body = await readBody(request, bodies.newCollection);
  if (!body.ok) return body.refusal;
  const wanted = { projectId: projectId.value, ...body.value };
  const registration = await registerCollection(store, wanted, nowMicros());
  switch (registration.outcome) {
    case "unknown_project":
      return unknown("project");
    case "other_project":
      return refuse(409, "conflict", "the collection belongs to another project");
    case "different_settings":
      return refuse(409, "conflict", "the project has registered the collection with other settings; change them with PATCH");
    case "unchanged":
      return { status: 200, body: viewOfCollection(registration.collection) };
    case "created": {
      const { projectId: project, collectionAddress: collection } = registration.collection;
      audit("registry.collection_created", { requestId: request.id, projectId: project, collection });
      return { status: 201, body: viewOfCollection(registration.collection) };
    }
  }
}

async function list({ store, collectionsOfProject }: CollectionRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const query = readListQuery(request);
  if (!query.ok) return query.refusal;
  if ((await store.readProject(projectId.value)) === undefined) return unknown("project");
  const source = collectionsOfProject(projectId.value);
  const name = `collections of ${projectId.value}`;
  return answerList({ name, key: /^0x[0-9a-f]{40}$/, source, view: viewOfCollection }, query.value);
}

async function get({ store }: CollectionRoutesOptions, request: Incoming) {
  const address = readCollectionAddress(request);
  if (!address.ok) return address.refusal;
  const collection = await store.read(address.value);
  return collection === undefined ? unknown("collection") : { status: 200, body: viewOfCollection(collection) };
}

async function change({ store, bodies, audit }: CollectionRoutesOptions, request: Incoming) {
  const address = readCollectionAddress(request);
  if (!address.ok) return address.refusal;
  const body = await readBody(request, bodies.collectionChange);
  if (!body.ok) return body.refusal;
  const collection = await changeCollection(store, address.value, body.value);
  if (collection === "unknown_collection") return unknown("collection");
  const fields = Object.keys(body.value).join(",");
  audit("registry.collection_changed", { requestId: request.id, collection: collection.collectionAddress, fields });
  return { status: 200, body: viewOfCollection(collection) };
}
