import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ListSource, nextItems } from "../../../../services/registry/core/listing.ts";

/** A list of keys in order, of which some lead nowhere. */
function sourceOf(rows: ReadonlyMap<string, boolean>): ListSource<string> {
  const keys = [...rows.keys()].sort();
  return {
    keysAfter: async (after, limit) => keys.filter((key) => key > after).slice(0, limit),
    resolve: async (asked) => asked.map((key) => (rows.get(key) ? `item ${key}` : undefined)),
  };
}

describe("the next items of a list", () => {
  const row = fc.tuple(fc.string({ minLength: 1, maxLength: 3 }), fc.boolean());

  it("neither skip nor repeat, and are as many as were asked for as long as more follows", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 40 }), fc.integer({ min: 1, max: 7 }), async (entries, limit) => {
        const rows = new Map(entries);
        const seen: string[] = [];
        for (let after = ""; ; ) {
          const found = await nextItems(sourceOf(rows), after, limit);
          expect(found.length).toBeLessThanOrEqual(limit);
          seen.push(...found.map(({ item }) => item));
          after = found.at(-1)?.key ?? after;
          if (found.length < limit) break;
        }
        const expected = [...rows].filter(([, leads]) => leads).map(([key]) => `item ${key}`);
        expect(seen).toEqual(expected.sort());
      }),
    );
  });

  it("go on behind the last one when something was added", async () => {
    const rows = new Map([["a", true]]);
    const [first] = await nextItems(sourceOf(rows), "", 10);
    rows.set("b", true);
    expect(await nextItems(sourceOf(rows), first?.key ?? "", 10)).toEqual([{ key: "b", item: "item b" }]);
  });
});
