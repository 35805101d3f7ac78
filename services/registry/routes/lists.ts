import { z } from "zod";
import type { Answer } from "../../common/http/answer.ts";
import type { Incoming } from "../../common/http/incoming.ts";
import { pageOf, parsePage } from "../../common/http/paging.ts";
import { refuseFields } from "../../common/http/problems.ts";
import { parseQuery } from "../../common/http/query.ts";
import { type ListSource, nextItems } from "../core/listing.ts";
import type { Read } from "./requests.ts";

type PageQuery = Readonly<Partial<Record<"page_size" | "cursor", string>>>;
export type ListQuery<F extends string> = PageQuery & Readonly<Partial<Record<F, string>>>;

export function readListQuery<F extends string = never>(request: Incoming, filters: readonly F[] = []): Read<ListQuery<F>> {
  const query = parseQuery<F | keyof PageQuery>(request.search, [...filters, "page_size", "cursor"]);
  return query.ok ? { ok: true, value: query.values } : { ok: false, refusal: refuseFields(query.problems) };
}

export interface List<T> {
  /** Name and filter: a cursor fits no other. */
  readonly name: string;
  /** What the key of a row looks like: a cursor comes from outside. */
  readonly key: RegExp;
  readonly source: ListSource<T>;
  view(item: T): unknown;
}

export async function answerList<T>({ name: scope, key, source, view }: List<T>, query: PageQuery): Promise<Answer> {
  const asked = parsePage(query, { scope, place: z.tuple([z.string().regex(key)]) });
  if (!asked.ok) return refuseFields(asked.problems);
  const { size, behind: [after] = [""] } = asked.page;
  const found = await nextItems(source, after, size + 1);
  const page = pageOf(found, asked.page, { scope, placeOf: (listed): [string] => [listed.key] });
  return { status: 200, body: { ...page, result: page.result.map(({ item }) => view(item)) } };
}
