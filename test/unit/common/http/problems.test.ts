import { expect, it } from "vitest";
import { z } from "zod";
import { parseFields, refuseFields } from "../../../../services/common/http/problems.ts";

const schema = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(3)
    .regex(/^[a-z]*$/, "must be of small letters")
    .default("abc"),
  count: z.int().min(1).max(9).default(1),
  kind: z.enum(["one", "two"]).default("one"),
  list: z
    .array(z.strictObject({ id: z.string() }))
    .min(1)
    .max(2)
    .default([{ id: "x" }]),
});

it.each<[string, unknown, string]>([
  ["no object", [], "body type: must be an object"],
  ["nothing", undefined, "body type: is missing"],
  ["a number for a text", { name: 1 }, "name type: must be a string"],
  ["a text for a number", { count: "1" }, "count type: must be a number"],
  ["a fraction", { count: 1.5 }, "count type: must be a whole number"],
  ["too little", { count: 0 }, "count minimum: must be at least 1"],
  ["too much", { count: 10 }, "count maximum: must be at most 9"],
  ["an empty text", { name: "" }, "name min_length: must have at least 1 characters"],
  ["a long text", { name: "abcd" }, "name max_length: must have at most 3 characters"],
  ["a text of another form", { name: "A" }, "name format: must be of small letters"],
  ["an unknown word", { kind: "three" }, "kind enum: must be one of one, two"],
  ["an empty list", { list: [] }, "list min_items: must have at least 1 entries"],
  ["a long list", { list: [{ id: "" }, { id: "" }, { id: "" }] }, "list max_items: must have at most 2 entries"],
  ["an item without its field", { list: [{ id: "" }, {}] }, "list[1].id type: is missing"],
  ["an unknown field", { other: 1 }, "other unknown_field: there is no such field"],
  ["an unknown field of an endless name", { ["n".repeat(1_000)]: 1 }, `${"n".repeat(64)} unknown_field: there is no such field`],
])("names place, rule and reason of %s", (_what, value, expected) => {
  const parsed = parseFields(schema, value);
  const lines = parsed.ok ? [] : parsed.problems.map(({ field, rule, message }) => `${field} ${rule}: ${message}`);
  expect(lines).toEqual([expected]);
});

it("refuses with the first problem in its sentence, the number of the others, and the first twenty in its details", () => {
  const problem = { field: "list[0]", rule: "type", message: "must be a string" };
  const refusal = refuseFields(Array.from({ length: 30 }, () => problem));
  expect(refusal).toMatchObject({ status: 400, body: { code: "invalid_request" } });
  expect(refusal.body.message).toBe("list[0]: must be a string, and 29 more");
  expect(refusal.body.details).toHaveLength(20);
  expect(refuseFields([problem]).body.message).toBe("list[0]: must be a string");
});
