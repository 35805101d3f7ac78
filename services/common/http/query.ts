import type { Problem } from "./answer.ts";

export type QueryResult<N extends string> =
  | { readonly ok: true; readonly values: Readonly<Partial<Record<N, string>>> }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * The query parameters of a request, each at most once and of the names that the route knows. An unknown one is an error:
 * a misspelt filter that is ignored answers a question nobody asked.
 */
export function parseQuery<N extends string>(search: string, allowed: readonly N[]): QueryResult<N> {
  const values: Partial<Record<N, string>> = {};
  const problems: Problem[] = [];
  for (const [name, value] of new URLSearchParams(search)) {
    const known = allowed.find((candidate) => candidate === name);
    if (known === undefined) problems.push(unknownParameter(name, allowed));
    else if (Object.hasOwn(values, known)) problems.push({ field: known, rule: "once", message: "is given twice" });
    else values[known] = value;
  }
  return problems.length === 0 ? { ok: true, values } : { ok: false, problems: problems.slice(0, 20) };
}

function unknownParameter(name: string, allowed: readonly string[]): Problem {
  const known = allowed.length === 0 ? "there are none here" : `there are ${allowed.join(", ")}`;
  return { field: name.slice(0, 64), rule: "unknown_parameter", message: `is no query parameter of this path: ${known}` };
}
