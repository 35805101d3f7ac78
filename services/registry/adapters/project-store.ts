import { concurrently } from "../../common/cassandra/parallel.ts";
import { type Project, projectColumns, projectOf, readProject } from "../../common/cassandra/registrations.ts";
import type { Cassandra } from "../../common/cassandra/session.ts";
import type { ListSource } from "../core/listing.ts";
import type { ProjectStore } from "../core/projects.ts";
import { assignmentsOf } from "./assignments.ts";

const columnsOfFields = { name: "name", ownerAddress: "owner_address", refreshesPerHour: "refreshes_per_hour" };

export function createProjectStore(cassandra: Cassandra): ProjectStore {
  return {
    nextId: () => nextProjectId(cassandra),
    index: (ownerAddress, projectId) =>
      cassandra.write("INSERT INTO projects_by_owner (owner_address, project_id) VALUES (?, ?)", [ownerAddress, projectId]),
    async insert({ projectId, name, ownerAddress, refreshesPerHour, createdAt }) {
      const query = `INSERT INTO projects (${projectColumns}) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS`;
      const { applied } = await cassandra.writeIf(query, [projectId, name, ownerAddress, refreshesPerHour, createdAt]);
      return applied;
    },
    read: (projectId) => readProject(cassandra, projectId),
    async update(projectId, change) {
      const { text, params } = assignmentsOf(change, columnsOfFields);
      const query = `UPDATE projects SET ${text} WHERE project_id = ? IF EXISTS`;
      const { applied } = await cassandra.writeIf(query, [...params, projectId]);
      return applied;
    },
  };
}

/**
 * Counts up by lightweight transaction: ids stay short, and two creators never get the same one. Who loses a round was overtaken by
 * somebody who got an id, so rounds end. A creator that dies after it leaves a gap, nothing else.
 */
async function nextProjectId(cassandra: Cassandra): Promise<number> {
  const first = await cassandra.writeIf("INSERT INTO sequences (name, next) VALUES ('project_id', 2) IF NOT EXISTS", []);
  if (first.applied) return 1;
  for (let id = Number(first.row.next); ; ) {
    const query = "UPDATE sequences SET next = ? WHERE name = 'project_id' IF next = ?";
    const { applied, row } = await cassandra.writeIf(query, [id + 1, id]);
    if (applied) return id;
    id = Number(row.next);
  }
}

/** All projects in the order of the cluster's tokens: no order for people, but one that pages can go by without an index. */
export function allProjects(cassandra: Cassandra): ListSource<Project> {
  // Rows read for their keys are the items: asked for once.
  const read = new Map<string, Project>();
  return {
    async keysAfter(after, limit) {
      const place = after === "" ? "" : "WHERE token(project_id) > token(?)";
      const params = after === "" ? [limit] : [BigInt(after), limit];
      const rows = await cassandra.read(`SELECT ${projectColumns} FROM projects ${place} LIMIT ?`, params);
      for (const project of rows.map(projectOf)) read.set(String(project.projectId), project);
      return rows.map((row) => String(row.project_id));
    },
    resolve: async (keys) => keys.map((key) => read.get(key)),
  };
}

/** The projects of one owner by id; those that went to another owner are stepped over. */
export function projectsOfOwner(cassandra: Cassandra, ownerAddress: string): ListSource<Project> {
  return {
    async keysAfter(after, limit) {
      const query = "SELECT project_id FROM projects_by_owner WHERE owner_address = ? AND project_id > ? LIMIT ?";
      const rows = await cassandra.read(query, [ownerAddress, BigInt(after), limit]);
      return rows.map((row) => String(row.project_id));
    },
    async resolve(keys) {
      const projects = await concurrently(16, keys, (key) => readProject(cassandra, Number(key)));
      return projects.map((project) => (project?.ownerAddress === ownerAddress ? project : undefined));
    },
  };
}
