import type { Project } from "../../common/cassandra/registrations.ts";
import { addressSchema } from "../../common/http/fields.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { pageParameters, pageSchema } from "../../common/http/paging.ts";
import { refuseFields } from "../../common/http/problems.ts";
import { addressForm, parseAddress } from "../../common/messages/address.ts";
import type { Bodies } from "../core/bodies.ts";
import type { ListSource } from "../core/listing.ts";
import { changeProject, createProject, type ProjectStore } from "../core/projects.ts";
import { projectSchema, viewOfProject } from "../core/views.ts";
import { answerList, readListQuery } from "./lists.ts";
import { readBody, readProjectId, unknown } from "./requests.ts";
import type { AdminRoute, Audit } from "./route.ts";

export interface ProjectRoutesOptions {
  readonly store: ProjectStore;
  readonly allProjects: () => ListSource<Project>;
  readonly projectsOfOwner: (ownerAddress: string) => ListSource<Project>;
  readonly bodies: Bodies;
  readonly audit: Audit;
  readonly nowMicros: () => number;
}

export function projectRoutes(options: ProjectRoutesOptions): AdminRoute[] {
  const { bodies } = options;
  return [
    {
      method: "POST",
      path: "/v1/projects",
      document: {
        summary: "Register a project",
        body: bodies.newProject,
        answers: { 201: { description: "Registered; project_id is what the other endpoints ask for.", schema: projectSchema } },
      },
      handle: (request) => create(options, request),
    },
    {
      method: "GET",
      path: "/v1/projects",
      document: {
        summary: "List projects",
        query: {
          ...pageParameters,
          owner_address: addressSchema.describe("Only the projects that this address owns now"),
        },
        answers: { 200: { description: "A page, in an order that stays.", schema: pageSchema(projectSchema) } },
      },
      handle: (request) => list(options, request),
    },
    {
      method: "GET",
      path: "/v1/projects/:project_id",
      document: {
        summary: "Get a project",
        answers: { 200: { description: "The project.", schema: projectSchema } },
        refusals: [404],
      },
      handle: (request) => get(options, request),
    },
    {
      method: "PATCH",
      path: "/v1/projects/:project_id",
      document: {
        summary: "Change a project: its name, its owner, its hourly limit",
        body: bodies.projectChange,
        answers: { 200: { description: "The project as it is now.", schema: projectSchema } },
        refusals: [404],
      },
      handle: (request) => change(options, request),
    },
  ];
}

async function create({ store, bodies, audit, nowMicros }: ProjectRoutesOptions, request: Incoming) {
  const body = await readBody(request, bodies.newProject);
  if (!body.ok) return body.refusal;
  const project = await createProject(store, body.value, nowMicros());
  request.note({ projectId: project.projectId });
  audit("registry.project_created", { requestId: request.id, projectId: project.projectId, owner: project.ownerAddress });
  return { status: 201, body: viewOfProject(project) };
}

async function list(options: ProjectRoutesOptions, request: Incoming) {
  const query = readListQuery(request, ["owner_address"]);
  if (!query.ok) return query.refusal;
  const { owner_address: ownerText } = query.value;
  const common = { key: /^[1-9][0-9]{0,15}$/, view: viewOfProject };
  if (ownerText === undefined) return answerList({ name: "projects", source: options.allProjects(), ...common }, query.value);
  const owner = parseAddress(ownerText);
  if (owner === undefined) {
    return refuseFields([{ field: "owner_address", rule: "address", message: addressForm }]);
  }
  return answerList({ name: `projects of ${owner}`, source: options.projectsOfOwner(owner), ...common }, query.value);
}

async function get({ store }: ProjectRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const project = await store.read(projectId.value);
  return project === undefined ? unknown("project") : { status: 200, body: viewOfProject(project) };
}

async function change({ store, bodies, audit }: ProjectRoutesOptions, request: Incoming) {
  const projectId = readProjectId(request);
  if (!projectId.ok) return projectId.refusal;
  const body = await readBody(request, bodies.projectChange);
  if (!body.ok) return body.refusal;
  const project = await changeProject(store, projectId.value, body.value);
  if (project === "unknown_project") return unknown("project");
  const fields = Object.keys(body.value).join(",");
  audit("registry.project_changed", { requestId: request.id, projectId: project.projectId, fields });
  return { status: 200, body: viewOfProject(project) };
}
