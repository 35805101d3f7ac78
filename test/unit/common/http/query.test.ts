import { expect, it } from "vitest";
import { parseQuery } from "../../../../services/common/http/query.ts";

it.each<[string, string, object]>([
  ["nothing", "", { ok: true, values: {} }],
  ["known names, decoded", "cursor=a%20b&page_size=", { ok: true, values: { cursor: "a b", page_size: "" } }],
  ["a name twice", "cursor=1&cursor=2", { ok: false, problems: [{ field: "cursor", rule: "once" }] }],
  ["an unknown name", "page-size=5", { ok: false, problems: [{ field: "page-size", rule: "unknown_parameter" }] }],
  ["a bracketed prototype", "__proto__[x]=1", { ok: false, problems: [{ field: "__proto__[x]", rule: "unknown_parameter" }] }],
  ["the prototype itself", "__proto__=1", { ok: false, problems: [{ field: "__proto__", rule: "unknown_parameter" }] }],
])("%s", (_name, search, expected) => {
  expect(parseQuery(search, ["cursor", "page_size"])).toMatchObject(expected);
});

it("says what is wrong without the name, which stands before it", () => {
  for (const search of ["cursor=1&cursor=2", "limit=5"]) {
    const result = parseQuery(search, ["cursor"]);
    for (const { field, message } of result.ok ? [] : result.problems) expect(message).not.toContain(field);
  }
  expect(parseQuery("limit=5", ["cursor"]).ok).toBe(false);
});

it("names the parameters there are", () => {
  expect(JSON.stringify(parseQuery("limit=5", ["cursor", "page_size"]))).toContain("there are cursor, page_size");
});

it("does not repeat a long name or a thousand of them", () => {
  const result = parseQuery(Array.from({ length: 1_000 }, (_, index) => `${"n".repeat(1_000)}${index}`).join("&"), []);
  expect(JSON.stringify(result).length).toBeLessThan(5_000);
});
