import type { z } from "zod";
import { type Problem, type Refusal, refuse } from "./answer.ts";

export type Fields<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: readonly Problem[] };

/** A value by its schema, or everything that is wrong with it; nothing that was not checked is repeated. */
export function parseFields<S extends z.ZodType>(schema: S, value: unknown): Fields<z.output<S>> {
  const parsed = schema.safeParse(value, { error: messageOf });
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, problems: parsed.error.issues.flatMap(problemsOf) };
}

/** A thousand wrong ids need not be a thousand lines. */
const listedProblems = 20;

/** A 400 that lists what is wrong, shortened when it is much. */
export function refuseFields(problems: readonly Problem[]): Refusal {
  const [first] = problems;
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : "";
  return refuse(400, "invalid_request", `${first?.field ?? "request"}: ${first?.message ?? "is invalid"}${more}`, {
    details: problems.slice(0, listedProblems),
  });
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ field: key.slice(0, 64), rule: "unknown_field", message: "there is no such field" }));
  }
  return [{ field: fieldAt(issue.path), rule: ruleOf(issue), message: issue.message }];
}

/** `token_ids[3]`; `body` when it is wrong as a whole. */
function fieldAt(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "body" : text.slice(1);
}

/** Named as JSON Schema names them. */
function ruleOf(issue: z.core.$ZodIssue): string {
  if (issue.code === "custom") return typeof issue.params?.rule === "string" ? issue.params.rule : "custom";
  if (issue.code === "too_small") return bounds[issue.origin]?.least ?? "minimum";
  if (issue.code === "too_big") return bounds[issue.origin]?.most ?? "maximum";
  return rules[issue.code] ?? issue.code;
}

const rules: Readonly<Record<string, string>> = { invalid_type: "type", invalid_value: "enum", invalid_format: "format" };
const bounds: Readonly<Record<string, { least: string; most: string; unit: string }>> = {
  array: { least: "min_items", most: "max_items", unit: "entries" },
  string: { least: "min_length", most: "max_length", unit: "characters" },
};

/** The sentence after the field's name; a schema's own message goes before it. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "invalid_type") {
    return issue.input === undefined ? "is missing" : `must be ${types[issue.expected] ?? issue.expected}`;
  }
  if (issue.code === "too_small") return boundOf("least", issue.minimum, issue.origin);
  if (issue.code === "too_big") return boundOf("most", issue.maximum, issue.origin);
  return issue.code === "invalid_value" ? `must be one of ${issue.values.join(", ")}` : undefined;
}

const types: Readonly<Record<string, string>> = {
  array: "an array",
  int: "a whole number",
  number: "a number",
  object: "an object",
  string: "a string",
};

function boundOf(side: "least" | "most", bound: number | bigint, origin: string): string {
  const unit = bounds[origin]?.unit;
  return unit === undefined ? `must be at ${side} ${bound}` : `must have at ${side} ${bound} ${unit}`;
}
