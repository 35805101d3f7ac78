import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { decodeCursor, encodeCursor } from "../../../../services/common/http/cursor.ts";
import { pageOf, parsePage } from "../../../../services/common/http/paging.ts";

const word = "word";
const places = fc.array(fc.oneof(fc.string(), fc.maxSafeInteger()));

describe("a cursor", () => {
  it("holds its place, and only for its list", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), places, (scope, other, place) => {
        const cursor = encodeCursor(scope, place);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(decodeCursor(scope, cursor)).toEqual(place);
        if (other !== scope) expect(decodeCursor(other, cursor)).toBeUndefined();
      }),
    );
  });

  it("is refused when any of its characters was changed", () => {
    fc.assert(
      fc.property(places, fc.nat(), fc.constantFrom(..."Az09-_=+/ "), (place, at, by) => {
        const cursor = encodeCursor("list", place);
        const index = at % cursor.length;
        const changed = cursor.slice(0, index) + by + cursor.slice(index + 1);
        const read = decodeCursor("list", changed);
        // A change inside a text or number of the place is another place, in its one spelling.
        if (changed !== cursor && read !== undefined) expect(encodeCursor("list", read)).toBe(changed);
      }),
    );
  });

  it.each([
    ["nothing", ""],
    ["no base64", "%%%"],
    ["no JSON", Buffer.from("{").toString("base64url")],
    ["another version", Buffer.from('[2,"list",null]').toString("base64url")],
    ["more in it", Buffer.from('[1,"list",null,1]').toString("base64url")],
    ["a text for a place", Buffer.from('[1,"list","1"]').toString("base64url")],
    ["no array", Buffer.from('{"0":1}').toString("base64url")],
    ["an object for a place", Buffer.from('[1,"list",{}]').toString("base64url")],
    ["padding", `${Buffer.from('[1,"list",null]').toString("base64url")}=`],
    ["blanks in it", Buffer.from('[1, "list",null]').toString("base64url")],
    ["a fraction", Buffer.from('[1,"list",[1.5]]').toString("base64url")],
    ["a great deal", "A".repeat(10_000)],
  ])("of %s is refused", (_name, cursor) => {
    expect(decodeCursor("list", cursor)).toBeUndefined();
  });
});

describe("a page request", () => {
  const words = { scope: "list", place: z.tuple([z.int().min(0), z.string().regex(/^[a-z]+$/)]) };

  it("asks for 50 items from the beginning by itself", () => {
    expect(parsePage({}, words)).toEqual({ ok: true, page: { size: 50, behind: undefined } });
  });

  it.each(["1", "50", "200"])("takes a page size of %s", (size) => {
    expect(parsePage({ page_size: size }, words)).toMatchObject({ page: { size: Number(size) } });
  });

  it.each(["0", "201", "-1", "1.5", "1e2", "", " 5", "05", "٥", "1000", "abc"])("refuses a page size of '%s'", (size) => {
    expect(parsePage({ page_size: size }, words)).toMatchObject({ problems: [{ field: "page_size", rule: "range" }] });
  });

  it.each<[string, (string | number)[]]>([
    ["of another list's form", [5, 7]],
    ["with a negative number", [-1, word]],
    ["with a text of another form", [5, "W0RD"]],
    ["with too much", [5, word, 1]],
  ])("refuses a cursor %s", (_name, place) => {
    expect(parsePage({ cursor: encodeCursor("list", place) }, words)).toMatchObject({ problems: [{ field: "cursor" }] });
  });

  it("begins behind the place of its cursor", () => {
    expect(parsePage({ cursor: encodeCursor("list", [5, word]) }, words)).toMatchObject({ page: { behind: [5, word] } });
  });
});

describe("a page", () => {
  const list = { scope: "list", placeOf: (item: number): [number, number] => [item, 0] };

  it("points behind its last item and tells that more follow", () => {
    const page = pageOf([9, 8, 7], { size: 2, behind: undefined }, list);
    expect(page).toEqual({ result: [9, 8], cursor: encodeCursor("list", [8, 0]), remaining: 1 });
  });

  it("has a cursor when it is the last one", () => {
    expect(pageOf([9, 8], { size: 2, behind: undefined }, list)).toMatchObject({
      cursor: encodeCursor("list", [8, 0]),
      remaining: 0,
    });
  });

  it("stays where it was when it is empty", () => {
    expect(pageOf([], { size: 2, behind: [8, 0] }, list).cursor).toBe(encodeCursor("list", [8, 0]));
    expect(pageOf([], { size: 2, behind: undefined }, list).cursor).toBe(encodeCursor("list", null));
  });
});
