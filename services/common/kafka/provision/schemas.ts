import { messageOf } from "../../errors.ts";
import { schemaText, subjectOf } from "../schema-files.ts";
import type { TopicDefinition, Topics } from "../topics.ts";

export interface ProvisionSchemasOptions {
  readonly registryUrl: string;
  readonly topics: Topics;
  /** Look, and change nothing. */
  readonly dryRun: boolean;
}

/** What was done, or would be, about the schema of one topic. */
export interface SchemaReport {
  readonly subject: string;
  readonly action: "created" | "altered" | "unchanged";
  readonly notes: readonly string[];
  /** The registry's reason why it does not take the schema. */
  readonly refusal?: string;
}

const requestTimeoutMs = 15_000;

/**
 * Registers schemas/avro under `<topic>-value`, public ones fully compatible, internal ones backward. The level is set before
 * the schema, so that no schema is ever taken unchecked. Safe to repeat and to run twice at once.
 */
export async function provisionSchemas(options: ProvisionSchemasOptions): Promise<readonly SchemaReport[]> {
  const registry = new RegistryClient(options.registryUrl);
  const topics = options.topics.all.filter(({ schema }) => schema !== null);
  return Promise.all(topics.map((topic) => provisionSchema(registry, topic, options.dryRun)));
}

async function provisionSchema(registry: RegistryClient, topic: TopicDefinition, dryRun: boolean): Promise<SchemaReport> {
  const subject = subjectOf(topic);
  const schema = schemaText(topic);
  const level = topic.visibility === "public" ? "FULL_TRANSITIVE" : "BACKWARD_TRANSITIVE";
  const [currentLevel, registered] = await Promise.all([registry.levelOf(subject), registry.lookUp(subject, schema)]);
  const levelChanges = currentLevel !== level;
  if (levelChanges && !dryRun) await registry.setLevel(subject, level);
  const notes = levelChanges ? [`compatibility ${currentLevel ?? "unset"} → ${level}`] : [];
  if (registered === "known") return { subject, action: levelChanges ? "altered" : "unchanged", notes };
  const refusal = dryRun ? await registry.check(subject, schema) : await registry.register(subject, schema);
  const action = registered === "no subject" ? "created" : "altered";
  if (refusal !== undefined) return { subject, action: "unchanged", notes, refusal: `${subject}: ${refusal}` };
  return { subject, action, notes: registered === "no subject" ? [level] : [...notes, "a new version of the schema"] };
}

interface Answer {
  readonly status: number;
  readonly body: { readonly compatibilityLevel?: string; readonly is_compatible?: boolean; readonly message?: string };
}

/** The part of the Confluent API that provisioning needs; the client package sets the level only after the first schema. */
class RegistryClient {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url.replace(/\/$/, "");
  }

  async levelOf(subject: string): Promise<string | undefined> {
    const answer = await this.#ask("GET", `/config/${encodeURIComponent(subject)}`, [200, 404]);
    return answer.body.compatibilityLevel;
  }

  async setLevel(subject: string, compatibility: string): Promise<void> {
    const set = (expected: number[]) => this.#ask("PUT", `/config/${encodeURIComponent(subject)}`, expected, { compatibility });
    // Apicurio answers 409 when another run creates the rule at the same time; the second time it is there to be changed.
    const { status } = await set([200, 409]);
    if (status === 409) await set([200]);
  }

  async lookUp(subject: string, schema: string): Promise<"known" | "new version" | "no subject"> {
    const { status } = await this.#ask("POST", `/subjects/${encodeURIComponent(subject)}`, [200, 404], { schema });
    if (status === 200) return "known";
    const latest = await this.#ask("GET", `/subjects/${encodeURIComponent(subject)}/versions/latest`, [200, 404]);
    return latest.status === 200 ? "new version" : "no subject";
  }

  /** Undefined when the schema was taken, else the reason. */
  async register(subject: string, schema: string): Promise<string | undefined> {
    const path = `/subjects/${encodeURIComponent(subject)}/versions`;
    const { status, body } = await this.#ask("POST", path, [200, 409, 422], { schema });
    return status === 200 ? undefined : (body.message ?? `the registry answered ${status}`);
  }

  /** Undefined when the schema would be taken, else the reason. */
  async check(subject: string, schema: string): Promise<string | undefined> {
    const path = `/compatibility/subjects/${encodeURIComponent(subject)}/versions?verbose=true`;
    const { status, body } = await this.#ask("POST", path, [200, 404, 422], { schema });
    if (status === 404 || body.is_compatible === true) return undefined;
    return body.message ?? "the registry finds it incompatible with an earlier version";
  }

  async #ask(method: string, path: string, expected: readonly number[], body?: object): Promise<Answer> {
    const request = {
      method,
      headers: { "content-type": "application/vnd.schemaregistry.v1+json" },
      signal: AbortSignal.timeout(requestTimeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const text = await this.#text(path, request, expected);
    return { status: text.status, body: parsed(text.body) };
  }

  async #text(path: string, request: RequestInit, expected: readonly number[]): Promise<{ status: number; body: string }> {
    let answer: { status: number; body: string };
    try {
      const response = await fetch(`${this.#url}${path}`, request);
      answer = { status: response.status, body: await response.text() };
    } catch (error) {
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
      throw new Error(`the schema registry at ${this.#url} cannot be reached: ${messageOf(cause)}`, { cause: error });
    }
    if (expected.includes(answer.status)) return answer;
    throw new Error(`the schema registry answered ${answer.status} to ${request.method} ${path}: ${answer.body.slice(0, 500)}`);
  }
}

function parsed(text: string): Answer["body"] {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
