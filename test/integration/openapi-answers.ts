import { expect } from "vitest";
import { z } from "zod";

type Json = Readonly<Record<string, unknown>>;
type Schema = Parameters<typeof z.fromJSONSchema>[0];

interface Response {
  readonly headers?: Readonly<Record<string, { readonly required?: boolean; readonly schema: Json }>>;
  readonly content?: { readonly "application/json": { readonly schema: Json } };
}

interface Operation {
  readonly responses: Readonly<Record<string, Response>>;
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  /** undefined when there was none. */
  readonly body: unknown;
}

/** The OpenAPI document that a service serves, and which of the answers it promises have been seen. */
export class ServedDocument {
  readonly #paths: Paths;
  readonly #seen = new Set<string>();

  static async fetch(url: string): Promise<ServedDocument> {
    return new ServedDocument((await (await fetch(`${url}/openapi.json`)).json()) as Json);
  }

  private constructor(document: Json) {
    this.#paths = (resolved(document, document) as { paths: Paths }).paths;
  }

  /** Fails when the answer is of a status, has a header or is of a form that the document does not give its operation. */
  check(method: string, path: string, answer: Answered): void {
    const [template, item] = Object.entries(this.#paths).find(([candidate]) => fits(candidate, path)) ?? [];
    const name = `${method} ${template} ${answer.status}`;
    const promised = item?.[method.toLowerCase()]?.responses[answer.status];
    if (promised === undefined) throw new Error(`${name} is not in the document`);
    const problem = problemWith(promised, answer);
    expect(problem, `${name} ${JSON.stringify(answer.body)}`).toBeUndefined();
    this.#seen.add(name);
  }

  /** What the document promises and nobody has seen yet. */
  unseen(): string[] {
    const promised = Object.entries(this.#paths).flatMap(([path, item]) =>
      Object.entries(item).flatMap(([method, { responses }]) =>
        Object.keys(responses).map((status) => `${method.toUpperCase()} ${path} ${status}`),
      ),
    );
    return promised.filter((name) => !this.#seen.has(name));
  }
}

function problemWith({ headers = {}, content }: Response, answer: Answered): string | undefined {
  for (const [name, { required, schema }] of Object.entries(headers)) {
    const text = answer.headers.get(name);
    if (text === null && required === true) return `${name} is missing`;
    if (text !== null && !z.fromJSONSchema(schema as Schema).safeParse(Number(text)).success) return `${name}: ${text}`;
  }
  if (content === undefined) return answer.body === undefined ? undefined : "a body that was not promised";
  if (answer.headers.get("content-type") !== "application/json; charset=utf-8") return "another content type";
  return z.fromJSONSchema(content["application/json"].schema as Schema).safeParse(answer.body).error?.message;
}

function fits(template: string, path: string): boolean {
  const asked = (path.split("?", 1)[0] ?? "").split("/");
  const parts = template.split("/");
  return parts.length === asked.length && parts.every((part, index) => part.startsWith("{") || part === asked[index]);
}

/** Every reference replaced by what it leads to; the documents have no circles. */
function resolved(value: unknown, document: Json): unknown {
  if (Array.isArray(value)) return value.map((item) => resolved(item, document));
  if (typeof value !== "object" || value === null) return value;
  if ("$ref" in value) return resolved(at(document, String(value.$ref)), document);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolved(item, document)]));
}

function at(document: Json, reference: string): unknown {
  const keys = reference.replace(/^#\//, "").split("/");
  return keys.reduce<unknown>((value, key) => (value as Json | undefined)?.[key], document);
}
