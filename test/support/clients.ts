import type { Wallet } from "./wallet.ts";

/** An answer as it came. */
export interface Reply<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** What GET /v1/metadata-refreshes/{refresh_id} shows: specification section 2.1. */
export interface RefreshView {
  readonly refresh_id: string;
  readonly status: "queued" | "in_progress" | "completed";
  readonly collection_address: string;
  readonly started_at: string;
  readonly completed_at: string | null;
  readonly summary: { readonly succeeded: number; readonly failed: number; readonly pending: number };
}

/** One failed token: specification section 2.3. */
/** One call for a failed token. */
export interface AttemptView {
  readonly at: string;
  readonly status: number | null;
  readonly duration_ms: number;
  readonly bytes: number;
  readonly cause: string | null;
  readonly next: string;
}

export interface RefreshErrorView {
  readonly token_id: string;
  readonly collection_address: string;
  readonly client_token_metadata_url: string;
  readonly client_response_status_code: number | null;
  readonly client_response_body: string | null;
  readonly error_code: string;
  readonly error_detail: string | null;
  readonly attempts: readonly AttemptView[];
  readonly created_at: string;
}

interface Page<T> {
  readonly result: readonly T[];
  readonly cursor: string;
  readonly remaining: number;
}

/** What a project owner does, over HTTP and signed. Methods without `reply` in their result expect success and throw otherwise. */
export class OwnerClient {
  readonly wallet: Wallet;
  readonly #ingressUrl: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(ingressUrl: string, wallet: Wallet, options: { apiKey?: string } = {}) {
    this.wallet = wallet;
    this.#ingressUrl = ingressUrl;
    this.#headers = options.apiKey === undefined ? {} : { "x-api-key": options.apiKey };
  }

  async send<T>(method: string, path: string, request: { body?: unknown; headers?: Record<string, string> } = {}) {
    const headers = { ...this.#headers, ...(await this.wallet.headers()), ...request.headers };
    return send<T>(method, `${this.#ingressUrl}${path}`, { ...request, headers });
  }

  async requestRefresh(collectionAddress: string, tokenIds: readonly string[]): Promise<Reply<{ refresh_id: string }>> {
    const body = { collection_address: collectionAddress, token_ids: tokenIds };
    return accepted(await this.send<{ refresh_id: string }>("POST", "/v1/metadata-refreshes", { body }));
  }

  async getRefresh(refreshId: string): Promise<RefreshView> {
    return accepted(await this.send<RefreshView>("GET", `/v1/metadata-refreshes/${refreshId}`)).body;
  }

  /** Every error of the refresh, page by page. */
  async listErrors(refreshId: string, pageSize = 200): Promise<RefreshErrorView[]> {
    const errors: RefreshErrorView[] = [];
    let cursor = "";
    for (;;) {
      const path = `/v1/metadata-refreshes/${refreshId}/errors?page_size=${pageSize}${cursor}`;
      const page = accepted(await this.send<Page<RefreshErrorView>>("GET", path)).body;
      errors.push(...page.result);
      if (page.remaining === 0) return errors;
      cursor = `&cursor=${encodeURIComponent(page.cursor)}`;
    }
  }
}

/** What an operator registers: README, The API, registry. */
export class OperatorClient {
  readonly #registryUrl: string;
  readonly #adminToken: string;

  constructor(registryUrl: string, adminToken = "dev-admin-token") {
    this.#registryUrl = registryUrl;
    this.#adminToken = adminToken;
  }

  send<T>(method: string, path: string, body?: unknown): Promise<Reply<T>> {
    const headers = { authorization: `Bearer ${this.#adminToken}` };
    return send<T>(method, `${this.#registryUrl}${path}`, { body, headers });
  }

  /** Returns the project's id. */
  async createProject(project: { name: string; owner_address: string; refreshes_per_hour?: number }): Promise<number> {
    return accepted(await this.send<{ project_id: number }>("POST", "/v1/projects", project)).body.project_id;
  }

  async createCollection(projectId: number, collection: CollectionRegistration): Promise<void> {
    accepted(await this.send("POST", `/v1/projects/${projectId}/collections`, collection));
  }

  async registerTokens(collectionAddress: string, tokenIds: readonly string[]): Promise<void> {
    accepted(await this.send("POST", `/v1/collections/${collectionAddress}/tokens`, { token_ids: tokenIds }));
  }

  /** Returns the key. */
  async createApiKey(projectId: number, key: { name: string; requests_per_second: number }): Promise<string> {
    return accepted(await this.send<{ api_key: string }>("POST", `/v1/projects/${projectId}/api-keys`, key)).body.api_key;
  }
}

export interface CollectionRegistration {
  readonly collection_address: string;
  readonly metadata_api_url: string;
  readonly token_policy?: "registered" | "open";
  readonly max_concurrency?: number;
  readonly max_requests_per_second?: number;
}

async function send<T>(method: string, url: string, request: { body?: unknown; headers?: Record<string, string> }) {
  const body = request.body === undefined ? {} : { body: JSON.stringify(request.body) };
  const headers = { ...("body" in body ? { "content-type": "application/json" } : {}), ...request.headers };
  const response = await fetch(url, { method, headers, ...body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: (text === "" ? undefined : JSON.parse(text)) as T };
}

function accepted<T>(reply: Reply<T>): Reply<T> {
  if (reply.status >= 300) throw new Error(`answered ${reply.status}: ${JSON.stringify(reply.body)}`);
  return reply;
}
