import type { Project } from "../../common/cassandra/registrations.ts";

export type NewProject = Pick<Project, "name" | "ownerAddress" | "refreshesPerHour">;
/** What is absent stays; a null takes the override back. */
export type ProjectChange = Partial<NewProject>;

export interface ProjectStore {
  /** An id that nobody was given before. */
  nextId(): Promise<number>;
  /** Makes the project show up in its owner's list, as long as the project itself names that owner. Repeatable. */
  index(ownerAddress: string, projectId: number): Promise<void>;
  /** False when the id is taken. */
  insert(project: Project): Promise<boolean>;
  read(projectId: number): Promise<Project | undefined>;
  /** False when there is no such project. */
  update(projectId: number, change: ProjectChange): Promise<boolean>;
}

/**
 * The index row stands before the project: what is cut off in between leaves a row that leads nowhere, never a project that no
 * list shows. An id is taken only if the sequence was set back, by a restored backup for instance; then the next one is tried.
 */
export async function createProject(store: ProjectStore, settings: NewProject, createdAt: number): Promise<Project> {
  for (;;) {
    const project = { projectId: await store.nextId(), ...settings, createdAt };
    await store.index(project.ownerAddress, project.projectId);
    if (await store.insert(project)) return project;
  }
}

/**
 * A new owner's index row stands before the change, for the same reason. The former owner's row stays: deleting it would write a
 * tombstone, and two changes at the same time could delete the wrong one. Readers believe the project's own row.
 */
export async function changeProject(
  store: ProjectStore,
  projectId: number,
  change: ProjectChange,
): Promise<Project | "unknown_project"> {
  if ((await store.read(projectId)) === undefined) return "unknown_project";
  if (change.ownerAddress !== undefined) await store.index(change.ownerAddress, projectId);
  await store.update(projectId, change);
  return (await store.read(projectId)) ?? "unknown_project";
}
