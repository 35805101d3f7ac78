import { expect } from "vitest";
import { migrate } from "../../services/common/cassandra/migrate.ts";
import { type Cassandra, connectCassandra } from "../../services/common/cassandra/session.ts";
import { parse } from "../../services/registry/config.ts";
import { run } from "../../services/registry/run.ts";
import { createServiceContext, type TestServiceContext } from "../support/service-context.ts";
import { createKeyspace, type TestKeyspace } from "./cassandra-keyspace.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

export type Method = "GET" | "POST" | "PATCH" | "DELETE" | "PUT";

export const metadataApiUrl = "https://api.example.com/tokens";

let addressCount = 0;
/** An address that nobody used before. */
export function newAddress(): string {
  addressCount += 1;
  return `0x${addressCount.toString(16).padStart(40, "0")}`;
}

/** A registry that listens, and somebody with the admin token who calls it. */
export class RegistryService {
  readonly context: TestServiceContext;
  readonly url: string;

  private constructor(context: TestServiceContext, url: string) {
    this.context = context;
    this.url = url;
  }

  static async start(keyspace: TestKeyspace, contactPoint = keyspace.cluster.contactPoints[0] ?? ""): Promise<RegistryService> {
    const parsed = parse({
      HTTP_PORT: "0",
      CASSANDRA_CONTACT_POINTS: contactPoint,
      CASSANDRA_DATACENTER: keyspace.cluster.datacenter,
      CASSANDRA_KEYSPACE: keyspace.cluster.keyspace,
    });
    if (!parsed.ok) throw new Error(parsed.problems.join("; "));
    const context = createServiceContext("registry");
    await run(parsed.config, context);
    context.health.markStarted();
    const port = context.logs.find(({ event }) => event === "http.listening")?.port;
    return new RegistryService(context, `http://127.0.0.1:${port}`);
  }

  async call(method: Method, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Reply> {
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: "Bearer dev-admin-token", "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? {} : JSON.parse(text) };
  }

  /** Every item of a list, page by page; each page but the last must be full and say that more remains. */
  async readAll(path: string, pageSize: number): Promise<Json[]> {
    const items: Json[] = [];
    for (let cursor = ""; ; ) {
      const query = `${path.includes("?") ? "&" : "?"}page_size=${pageSize}${cursor}`;
      const { body } = await this.call("GET", path + query);
      const page = body.result as Json[];
      items.push(...page);
      expect(typeof body.cursor).toBe("string");
      if (body.remaining === 0) return items;
      expect({ remaining: body.remaining, length: page.length }).toEqual({ remaining: 1, length: pageSize });
      cursor = `&cursor=${body.cursor}`;
    }
  }

  async newProject(owner = newAddress()): Promise<number> {
    return Number((await this.call("POST", "/v1/projects", { name: "Game", owner_address: owner })).body.project_id);
  }

  async newCollection(projectId: number): Promise<string> {
    const collection_address = newAddress();
    const body = { collection_address, metadata_api_url: metadataApiUrl };
    await this.call("POST", `/v1/projects/${projectId}/collections`, body);
    return collection_address;
  }

  stop(): Promise<void> {
    return this.context.stop();
  }
}

/** A keyspace with the project's tables, and the registry on it. */
export async function setUpRegistry(): Promise<{
  keyspace: TestKeyspace;
  cassandra: Cassandra;
  registry: RegistryService;
  close: () => Promise<void>;
}> {
  const keyspace = createKeyspace("registry");
  const folder = new URL("../../schemas/cassandra/", import.meta.url).pathname;
  await migrate({ ...keyspace.cluster, replicationFactor: 1, folder });
  const cassandra = await connectCassandra(keyspace.cluster);
  const registry = await RegistryService.start(keyspace);
  const close = async () => {
    await registry.stop();
    await cassandra.close();
    await keyspace.close();
  };
  return { keyspace, cassandra, registry, close };
}
