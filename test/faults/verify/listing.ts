import type { FaultProject } from "../account.ts";

interface ListPage {
  readonly result: readonly { readonly refresh_id: string }[];
  readonly cursor: string;
  readonly remaining: number;
}

/** Every refresh that the owner is shown, page by page, in the order in which they are shown. */
export async function listRefreshes({ owner }: FaultProject, pageSize: number): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ""; ; ) {
    const reply = await owner.send<ListPage>("GET", `/v1/metadata-refreshes?page_size=${pageSize}${cursor}`);
    if (reply.status !== 200) throw new Error(`the list was answered ${reply.status}`);
    ids.push(...reply.body.result.map(({ refresh_id }) => refresh_id));
    if (reply.body.remaining === 0) return ids;
    cursor = `&cursor=${encodeURIComponent(reply.body.cursor)}`;
  }
}
