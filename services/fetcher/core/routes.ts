import type { TokenRefresh } from "../../common/messages/records.ts";
import type { Endpoint } from "./endpoint.ts";

/** Where the calls of a project for one URL go: one object for all works that go there. */
export interface Route {
  readonly queue: string;
  readonly endpoint: Endpoint;
}

/** Of URLs: when there are more, all are forgotten, and those in use found again. */
const rememberedCount = 1_000;

export class Routes {
  readonly #endpointOf: (metadataApiUrl: string) => Endpoint;
  /** By metadata_api_url, then by project. */
  readonly #known = new Map<string, Map<number, Route>>();

  constructor(endpointOf: (metadataApiUrl: string) => Endpoint) {
    this.#endpointOf = endpointOf;
  }

  of({ metadata_api_url: url, project_id: projectId }: Pick<TokenRefresh, "metadata_api_url" | "project_id">): Route {
    return this.#known.get(url)?.get(projectId) ?? this.#find(url, projectId);
  }

  #find(url: string, projectId: number): Route {
    const endpoint = this.#endpointOf(url);
    const route = { endpoint, queue: `${projectId} ${endpoint.ok ? endpoint.origin : ""}` };
    if (this.#known.size >= rememberedCount) this.#known.clear();
    const ofUrl = this.#known.get(url) ?? new Map<number, Route>();
    this.#known.set(url, ofUrl.set(projectId, route));
    return route;
  }
}
