import { z } from "zod";
import type { Problem } from "./answer.ts";
import { decodeCursor, encodeCursor } from "./cursor.ts";

const defaultPageSize = 50;
const maxPageSize = 200;

/** The query parameters of every list, for the documents. */
export const pageParameters = {
  page_size: z.int().min(1).max(maxPageSize).default(defaultPageSize).describe("Items on a page"),
  cursor: z.string().describe("The cursor of the page before, of the same list and filter"),
};

/** The envelope of every list: specification section 2.4. */
export const pageSchema = <T extends z.ZodType>(item: T) =>
  z.strictObject({
    result: z.array(item),
    cursor: z.string().describe("Opaque; the next page begins behind this one. Present on the last page too"),
    remaining: z.int().min(0).max(1).describe("1 when more items follow, 0 on the last page"),
  });

/** What a client asks of a list: how much, and behind which place; undefined: from the beginning. */
export interface PageRequest<P> {
  readonly size: number;
  readonly behind: P | undefined;
}

export type PageRequestResult<P> =
  | { readonly ok: true; readonly page: PageRequest<P> }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export interface Page<T> {
  readonly result: readonly T[];
  readonly cursor: string;
  readonly remaining: 0 | 1;
}

type Place = readonly (string | number)[];

/** `place` is the form of the list's places: a cursor that holds another was not made here. */
export function parsePage<P extends Place>(
  query: { readonly page_size?: string; readonly cursor?: string },
  list: { readonly scope: string; readonly place: z.ZodType<P> },
): PageRequestResult<P> {
  const size = parseSize(query.page_size);
  const behind = query.cursor === undefined ? null : parsePlace(query.cursor, list);
  const problems: Problem[] = [];
  if (size === undefined) {
    problems.push({ field: "page_size", rule: "range", message: `must be a whole number from 1 to ${maxPageSize}` });
  }
  if (behind === undefined) problems.push({ field: "cursor", rule: "cursor", message: "is not a cursor of this list" });
  if (size === undefined || behind === undefined) return { ok: false, problems };
  return { ok: true, page: { size, behind: behind ?? undefined } };
}

/** From one item more than the page holds: whether there is one is all that `remaining` says. */
export function pageOf<T, P extends Place>(
  found: readonly T[],
  request: PageRequest<P>,
  list: { readonly scope: string; readonly placeOf: (item: T) => P },
): Page<T> {
  const result = found.slice(0, request.size);
  const last = result.at(-1);
  const place = last === undefined ? request.behind : list.placeOf(last);
  return { result, cursor: encodeCursor(list.scope, place ?? null), remaining: found.length > request.size ? 1 : 0 };
}

function parseSize(text: string | undefined): number | undefined {
  if (text === undefined) return defaultPageSize;
  const size = /^[1-9][0-9]{0,2}$/.test(text) ? Number(text) : 0;
  return size >= 1 && size <= maxPageSize ? size : undefined;
}

/** null: the list's beginning. */
function parsePlace<P>(cursor: string, list: { readonly scope: string; readonly place: z.ZodType<P> }): P | null | undefined {
  const position = decodeCursor(list.scope, cursor);
  return position ? list.place.safeParse(position).data : position;
}
